import { checkUp } from '../checkup.js';
import { EXIT, type ExitCode } from '../exit.js';
import { checkupScreen } from '../screens/checkup.js';
import type { Session } from '../session.js';

/** `sluice doctor`: what is wrong with this installation, and what to do about it. */
export async function doctor(session: Session): Promise<ExitCode> {
  const fleet = await session.fleet();
  const facts = await fleet.inspect();
  // Buckets that are missing are named among the facts already.
  const [nodes, rollouts] = await Promise.all([fleet.list('nodes').catch(() => new Map()), fleet.list('rollouts').catch(() => new Map())]);
  const checks = checkUp(facts, [...nodes.values()], [...rollouts.values()]);
  const isHealthy = checks.every(({ state }) => state !== 'bad');
  session.io.out(session.isJson ? JSON.stringify({ ok: isHealthy, checks }) : checkupScreen(checks, session.io.colours));
  return isHealthy ? EXIT.done : EXIT.unexpected;
}
