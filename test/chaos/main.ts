import { roundsOrExit } from '../rounds.js';
import { Chaos, type Outcome } from './chaos.js';
import { scheduleOf } from './schedule.js';
import { LONG, SHORT } from './shape.js';

/** The memory of the processes is checked from the fifth round on. */
const ROUNDS = 6;

const HELP = `npm run chaos -- [options]

  --rounds N   so many rounds of faults and people (${ROUNDS})
  --seed S     what is done in them (1)
  --short      as npm test plays them: 14 s of faults instead of 40

Exit code: 0 every round was good, 1 one was not, 2 usage.
`;

/**
 * `npm run chaos -- --rounds N --seed S [--short]`: prints one line per round. If a round fails, it prints how to
 * repeat it.
 */
async function main(args: readonly string[]): Promise<number> {
  const { seed, rounds, flags } = roundsOrExit(HELP, args, { rounds: ROUNDS }, ['short']);
  const isShort = flags.has('short');
  const shape = isShort ? SHORT : LONG;
  const replay = (rounds: number): string =>
    `replay: npm run chaos -- --rounds ${rounds} --seed ${seed}${isShort ? ' --short' : ''}`;
  const chaos = await Chaos.start(shape);
  let failed = false;
  let played = 0;
  try {
    for (const [index, round] of scheduleOf(seed, rounds, shape).entries()) {
      played = index + 1;
      const outcome = await chaos.round(round);
      process.stdout.write(`${line(index + 1, seed, outcome)}\n`);
      failed = outcome.wrong.length > 0;
      if (!failed) continue;
      process.stdout.write(
        `${outcome.wrong.map((text) => `  ${text}`).join('\n')}\n  data: ${chaos.fleet.data}\n  schedule of the round: ${JSON.stringify(round)}\n  ${replay(played)}\n`,
      );
      return 1;
    }
    return 0;
  } catch (error) {
    failed = true;
    process.stdout.write(
      `  ${(error as Error).stack ?? String(error)}\n  data: ${chaos.fleet.data}\n  ${replay(played)}\n`,
    );
    return 1;
  } finally {
    await chaos.close(failed);
  }
}

function line(round: number, seed: number, { wrong, notes, evidence, quietMs }: Outcome): string {
  const noteText = [...notes]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([what, count]) => `${what} ${count}`)
    .join(', ');
  const memory = [...(evidence?.memory.at(-1) ?? [])];
  const sums = (['nats-server', 'appliers', ''] as const).map((kind) =>
    memory
      .filter(([name]) => (kind === '' ? !/^(nats-server|appliers)/.test(name) : name.startsWith(kind)))
      .map(([, mib]) => mib),
  );
  const [server = [], appliers = [], services = []] = sums;
  return [
    `round ${round} seed ${seed} ${wrong.length === 0 ? 'good' : 'WRONG'}`,
    `quiet after ${(quietMs / 1_000).toFixed(1)} s`,
    noteText,
    ...(evidence === undefined
      ? []
      : [
          ends(evidence.facts),
          `${evidence.facts.length} facts`,
          `${evidence.nodes.filter(({ status }) => status?.deferred !== '').length} deferred`,
          `MiB: server ${Math.max(0, ...server)}, a service at most ${Math.max(0, ...services)}, appliers at most ${Math.max(0, ...appliers)}`,
        ]),
  ].join(' · ');
}

function ends(facts: readonly { readonly type: string }[]): string {
  const count = (type: string): number => facts.filter((fact) => fact.type === type).length;
  return `${count('config.committed')} committed, ${count('config.ended')} ended, ${count('config.rejected')} rejected, ${count('node.lease.granted')} leases, ${count('node.unknown')} unknown`;
}

void main(process.argv.slice(2)).then((code) => process.exit(code));
