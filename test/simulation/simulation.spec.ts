import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Tally } from './runs/crew.js';
import { actorsOf, argumentsFor, planOf, type Plan } from './runs/plan.js';
import { FAULTS, KUBERNETES_FAULTS, LATER_FAULTS, SINGLE_FAULTS } from './faults/index.js';
import { MUTANTS } from './oracles/mutants.js';
import { newOracles } from './oracles/index.js';
import { PEOPLE } from './people/index.js';
import { runPlan } from './runs/run.js';
import { describeFailure, shrink, type ShrinkResult } from './runs/shrink.js';

/** Runs that once failed, by seed and minutes. Each found a bug that is fixed now, in a core or in the simulation. */
const ONCE_FAILED: readonly (readonly [number, number])[] = [
  [9, 20],
  [10, 8],
  [17, 5],
  [22, 12],
  [42, 8],
  [193, 20],
  [200, 12],
  [311, 8],
  [1053, 20],
  [1067, 5],
  [1145, 20],
  [1165, 12],
  [1170, 5],
  [1283, 8],
  [2058, 8],
  [2680, 8],
  [3077, 8],
  [3161, 20],
  [3246, 8],
  [3573, 12],
  [3598, 12],
  [4231, 12],
  [4248, 8],
  [4325, 12],
  [4368, 8],
  [20270, 8],
  [20321, 8],
  [21201, 8],
  [21419, 8],
  [21805, 8],
  [22107, 20],
  [22136, 8],
  [43096, 15],
  [51525, 6],
  [51631, 8],
  [52048, 6],
  [52931, 15],
  [10329, 15],
  [20049, 6],
];
/** The same, as whole plans. These stay the same, even if the meaning of seeds changes. */
const PLANS_ONCE_FAILED: readonly Plan[] = [
  {
    seed: 322,
    nodes: 1,
    copies: 1,
    minutes: 4,
    patient: false,
    kubernetes: false,
    actors: actorsOf('changes:1+4,killed-nodes:6,bus-away:0,lost-objects:0,unreachable-targets:0'),
  },
  {
    seed: 27_720,
    nodes: 5,
    copies: 3,
    minutes: 4,
    patient: true,
    kubernetes: true,
    actors: actorsOf('slow-steps,meddling-people:1,unready-nodes:1+2+3'),
  },
  {
    seed: 70_849,
    nodes: 5,
    copies: 1,
    minutes: 6,
    patient: false,
    kubernetes: true,
    actors: actorsOf(
      'late-views,slow-steps,bus-away:0,lost-answers,other-machines:5,killed-nodes:3,torn-journals:9,late-reports',
    ),
  },
  {
    seed: 221,
    nodes: 4,
    copies: 1,
    minutes: 6,
    patient: false,
    kubernetes: true,
    actors: actorsOf('steering:1,bus-away:0,other-machines:5,killed-starts:12,unready-nodes:4+7+8'),
  },
  {
    seed: 213,
    nodes: 3,
    copies: 1,
    minutes: 15,
    patient: false,
    kubernetes: false,
    actors: actorsOf(
      'changes:0+1+2+12+13,lost-answers,partitions:10+34,other-machines:4+14+16,late-views,slow-steps,' +
        'killed-services:1+2+3+4+10,stale-leaders:3+10,flapping-probes:7,killed-starts:2+4+5+6+7+13+14,lost-pushes',
    ),
  },
  {
    seed: 11_293,
    nodes: 5,
    copies: 2,
    minutes: 4,
    patient: false,
    kubernetes: true,
    actors: actorsOf('bad-for-one-kind:0+1,killed-take-overs:0,killed-trims:21,hung-appliers:6,lost-heartbeats'),
  },
  {
    seed: 11_368,
    nodes: 4,
    copies: 2,
    minutes: 4,
    patient: false,
    kubernetes: true,
    actors: actorsOf(
      'killed-nodes:2,lost-answers,read-again:6,partitions:0+6,slow-steps,parted-appends,killed-starts:0',
    ),
  },
  {
    seed: 1022,
    nodes: 3,
    copies: 1,
    minutes: 4,
    patient: false,
    kubernetes: false,
    actors: actorsOf('changes:0+1+2,lagging-journals,cut-off-copies:1+4+9,two-owners:1+4+9+12,paused-copies:2'),
  },
  {
    seed: 10_043,
    nodes: 1,
    copies: 2,
    minutes: 6,
    patient: false,
    kubernetes: true,
    actors: actorsOf('changes:0,slow-steps,hasty-people:2+3,host-names:0+2+4+5+6+12+13,lost-pushes'),
  },
  {
    seed: 11_658,
    nodes: 4,
    copies: 1,
    minutes: 8,
    patient: false,
    kubernetes: false,
    actors: actorsOf(
      'changes:0+1,steering:2,relabels:1,torn-journals:0+1+2,lost-answers,killed-services:0+1+2+5+6+7+9,' +
        'hasty-people:0+1+2+3+4+5+9+10+11+19,parted-appends,failing-probes:0+4,changing-probes:3,' +
        'missing-references:0+1+2+3+4+5+6+7+9+10+11+13,lost-owners:2+4+20+25+30,away-together:0,' +
        'two-owners:1+2+10+26',
    ),
  },
  {
    seed: 11_181,
    nodes: 2,
    copies: 2,
    minutes: 6,
    patient: false,
    kubernetes: false,
    actors: actorsOf(
      'changes:0+1+2+3+5,flapping-probes:0,bad-post,lost-heartbeats,rollbacks:0+1,changing-probes:0,' +
        'unreachable-targets:0+1,away-together:0+1,moved-targets:0+1+4+5',
    ),
  },
];
const SEEDS = Number(process.env['SLUICE_SIM_SEEDS'] ?? 2_000);
const FROM = 10_000;
/** The build. Seeds run in separate processes, on all processors. */
const MAIN = join(__dirname, '../../dist/test/simulation/main.js');
/** Far more than it needs. A hung run must end. */
const AT_MOST_MS = 15 * 60_000;

function everyone(seed: number, kubernetes: boolean): Plan {
  const actors = new Map(
    [...PEOPLE, ...FAULTS, ...(kubernetes ? KUBERNETES_FAULTS : [])].map(({ name }) => [name, undefined]),
  );
  return { ...planOf(seed), minutes: 15, actors, kubernetes };
}

/** Without the actors that did not exist when these seeds were kept. */
function withoutNewActors(plan: Plan): Plan {
  const later = new Set([...LATER_FAULTS, ...SINGLE_FAULTS, ...KUBERNETES_FAULTS].map(({ name }) => name));
  return { ...plan, kubernetes: false, actors: new Map([...plan.actors].filter(([name]) => !later.has(name))) };
}

test.each([false, true])(
  'the same seed gives the same trace, byte for byte, with every fault in it; on Kubernetes %s',
  (kubernetes) => {
    const one = runPlan(everyone(7, kubernetes), { trace: true });
    const other = runPlan(everyone(7, kubernetes), { trace: true });
    expect(one.facts).toBeGreaterThan(100);
    expect(other.trace.join('\n')).toBe(one.trace.join('\n'));
  },
);

test(
  'runs that once failed now pass',
  () => {
    const plans = [
      ...ONCE_FAILED.map(([seed, minutes]) => withoutNewActors({ ...planOf(seed), minutes })),
      ...PLANS_ONCE_FAILED,
    ];
    const failed = plans.flatMap((plan) => {
      const { failure } = runPlan(plan);
      return failure === undefined ? [] : [describeFailure({ seed: plan.seed, failure }, plan, false)];
    });
    expect(failed).toEqual([]);
  },
  AT_MOST_MS,
);

describe('in a world of faults', () => {
  let tally: Tally;
  beforeAll(async () => {
    tally = await sim('--seeds', String(SEEDS), '--from', String(FROM));
  }, AT_MOST_MS);

  test('every invariant holds', () => {
    expect(tally.failed.map((failed) => describeFailure(failed, planOf(failed.seed), false))).toEqual([]);
    expect(tally.seeds).toBe(SEEDS);
  });

  test('machines rebooted under their leases', () => {
    expect(tally.fired['restarts']).toBeGreaterThan(0);
    expect(tally.fired['escalations']).toBeGreaterThan(0);
  });

  test.each([
    'refused-evictions',
    'returning-pods',
    'stuck-pods',
    'overtaken',
    'unheard-answers',
    'throttled',
    'taken',
  ])('Kubernetes was in trouble: %s', (what) => {
    expect(tally.fired[what]).toBeGreaterThan(0);
  });

  test('unreferenced configs expired', () => {
    expect(tally.fired['tidying']).toBeGreaterThan(0);
  });

  test.each(
    [...PEOPLE, ...FAULTS, ...KUBERNETES_FAULTS].filter(({ parts }) => parts === undefined).map(({ name }) => name),
  )('%s took effect', (name) => {
    expect(tally.fired[name]).toBeGreaterThan(0);
  });
});

describe('a fault takes effect when the only other actors are those who publish', () => {
  test.each(FAULTS.map((fault) => [fault.name, fault] as const))('%s', (name, { parts = [] }) => {
    const fired = new Set<string>();
    const names = parts.length === 0 ? [name] : parts.map((part) => part.name);
    for (let seed = 1; seed <= 40 && !names.every((each) => fired.has(each)); seed++) {
      const plan: Plan = {
        ...planOf(seed),
        minutes: 8,
        patient: false,
        kubernetes: false,
        actors: actorsOf(`changes,${name}`),
      };
      const outcome = runPlan(plan);
      expect(
        outcome.failure === undefined ? [] : [describeFailure({ seed, failure: outcome.failure }, plan, false)],
      ).toEqual([]);
      for (const each of outcome.fired.keys()) fired.add(each);
    }
    expect(names.filter((each) => !fired.has(each))).toEqual([]);
  });
});

describe('each oracle detects its mutant', () => {
  test('and every oracle has one', () => {
    expect([...new Set(MUTANTS.map(({ caughtBy }) => caughtBy))].sort()).toEqual(
      newOracles()
        .map(({ name }) => name)
        .sort(),
    );
  });

  test.each(MUTANTS.map((mutant) => [mutant.name, mutant] as const))('%s', (_name, mutant) => {
    expect(firstCaught(mutant)).toBeDefined();
  });
});

describe('a failure', () => {
  const [mutant] = MUTANTS.filter(({ caughtBy }) => caughtBy === 'I6 paused');

  test('is shrunk, still fails in the same way, and its arguments make the same run again', () => {
    const seed = firstCaught(mutant as (typeof MUTANTS)[number]) as number;
    const shrunk = shrink(planOf(seed), { mutant }) as ShrinkResult;
    const { plan, outcome } = shrunk;
    expect(outcome.failure).toMatch(/^Violation: I6 paused:/);
    expect(plan.actors.size).toBeLessThan(planOf(seed).actors.size);
    // Nothing more can be left out: then it does not fail, or in another way.
    for (const fewer of withOneLess(shrunk))
      expect(runPlan(fewer, { mutant }).failure).not.toEqual(expect.stringMatching(/^Violation: I6 paused:/));
    const [, only = ''] = /--only (\S+)/.exec(argumentsFor(plan)) ?? [];
    const again = runPlan({ ...plan, actors: actorsOf(only) }, { mutant });
    expect(again.failure).toBe(outcome.failure);
  });

  test('of nothing is nothing', () => {
    expect(shrink({ ...planOf(1), actors: new Map(), minutes: 1, nodes: 1 })).toBeUndefined();
  });
});

/** Without one of the actors, or without one occurrence of one of them. */
function withOneLess({ plan, outcome }: ShrinkResult): readonly Plan[] {
  return [...plan.actors.keys()].flatMap((name) => {
    const numbers = outcome.occurrences.get(name) ?? [];
    const others = [...plan.actors].filter(([other]) => other !== name);
    return [
      { ...plan, actors: new Map(others) },
      ...(numbers.length < 2 ? [] : numbers).map((left) => {
        const kept = numbers.filter((number) => number !== left);
        return { ...plan, actors: new Map([...plan.actors, [name, new Set(kept)]]) };
      }),
    ];
  });
}

function firstCaught(mutant: (typeof MUTANTS)[number]): number | undefined {
  for (let seed = 1; seed <= 80; seed++) {
    if (
      runPlan({ ...planOf(seed), ...mutant.on }, { mutant }).failure?.startsWith(`Violation: ${mutant.caughtBy}:`) ===
      true
    )
      return seed;
  }
  return undefined;
}

/** `npm run sim` with these arguments, in a separate process. */
async function sim(...args: readonly string[]): Promise<Tally> {
  if (!existsSync(MAIN)) throw new Error(`${MAIN} is not there: npm run build`);
  const child = spawn(process.execPath, [MAIN, ...args, '--json'], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.on('data', (part: Buffer) => (text += part.toString()));
  await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve));
  return JSON.parse(text) as Tally;
}
