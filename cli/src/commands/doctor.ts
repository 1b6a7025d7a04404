import type { ViewBucket, ViewValues } from '#libs/contracts';
import { checkUp } from '../checkup.js';
import { EXIT, type ExitCode } from '../exit.js';
import { checkupScreen } from '../screens/checkup.js';
import type { Session } from '../session.js';

/** `sluice doctor`: what is wrong with this installation, and what to do about it. */
export async function doctor(session: Session): Promise<ExitCode> {
  const fleet = await session.fleet();
  const facts = await fleet.inspect();
  // Buckets that are missing are named among the facts already.
  const listed = async <B extends ViewBucket>(bucket: B): Promise<ViewValues[B][]> => [
    ...(await fleet.list(bucket).catch(() => new Map<string, ViewValues[B]>())).values(),
  ];
  const [nodes, rollouts, statuses] = await Promise.all([listed('nodes'), listed('rollouts'), listed('status')]);
  const checks = checkUp(facts, nodes, rollouts, statuses);
  const isHealthy = checks.every(({ state }) => state !== 'bad');
  session.io.out(
    session.isJson ? JSON.stringify({ ok: isHealthy, checks }) : checkupScreen(checks, session.io.colours),
  );
  return isHealthy ? EXIT.done : EXIT.unexpected;
}
