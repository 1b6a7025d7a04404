import type { Action } from '#libs/contracts';
import { ABLE, Bench, file, hash, probe, SELF } from './applier.fixture.js';
import { draw } from './chance.js';

const A = hash('a');
const B = hash('b');
const SEEDS = 2_500;
const ACTIONS: readonly (readonly Action[])[] = [
  [],
  [{ kind: 'daemon-reload' }, { kind: 'restart', unit: 'x.service' }],
  [{ kind: 'drain' }, { kind: 'reboot' }],
];

/** Random numbers below 1 from a seed. */
function chances(seed: number): () => number {
  let chance = seed;
  return () => {
    const { value, next } = draw(chance);
    chance = next;
    return value;
  };
}

const OLD = { '/a': 'old', '/b': 'old', '/c': 'mine' };
const NEW = { '/a': 'new', '/b': 'its own', '/c': 'new', '/d': 'new' };

/** A node on config A (two files; /b and /c had their own content before), a lease to B, and a world with faults. */
function scene(chance: () => number): { readonly bench: Bench; readonly actions: readonly Action[] } {
  const bench = new Bench();
  if (chance() < 0.7) bench.self = { ...SELF, capabilities: ABLE };
  const actions = ACTIONS[Math.floor(chance() * ACTIONS.length)] ?? [];
  bench.restart();
  bench.machine.files.set('/b', 'its own').set('/c', 'mine');
  bench.config('a', [file('/a', 'old'), file('/b', 'old')]);
  bench.config('b', [file('/a', 'new'), file('/c', 'new'), file('/d', 'new'), probe('p')]);
  bench.settle();
  bench.grant({ hash: A });
  bench.settle();
  bench.machine.boot();
  expect(Object.fromEntries(bench.machine.files)).toEqual(OLD);
  const against = chance();
  if (against < 0.3) bench.machine.probes = (_name, files) => files.get('/d') !== 'new';
  else if (against < 0.5)
    bench.machine.refuses = (entry) => (entry.spec['path'] === '/d' ? { fault: 'content', reason: 'no' } : undefined);
  else if (against < 0.6)
    bench.machine.refuses = (entry) =>
      entry.spec['content'] === 'new' && entry.spec['path'] === '/c' && chance() < 0.5
        ? { fault: 'node', reason: 'full' }
        : undefined;
  if (chance() < 0.4)
    bench.machine.refusesAction = () => (chance() < 0.6 ? { fault: 'node', reason: 'it hangs' } : undefined);
  if (chance() < 0.3) bench.machine.unitFails = () => bench.machine.running.get('/d') === 'new';
  bench.grant({ lease: 'l2', hash: B, from: A, ledger: 9_000, actions });
  return { bench, actions };
}

/** Kills, reboots, lost connections, lost time and full disks at any step. Then no more faults. */
function storm(bench: Bench, chance: () => number): void {
  for (let i = 0; i < 120; i++) {
    const luck = chance();
    if (luck < 0.12) bench.restart();
    else if (luck < 0.14) bench.reboot(Math.floor(chance() * 5_000));
    else if (luck < 0.17) bench.bus.up = !bench.bus.up;
    else if (luck < 0.2) bench.nowMs += chance() * 40_000;
    else if (luck < 0.22) bench.hangs = !bench.hangs;
    else if (luck < 0.25) bench.machine.isFull = !bench.machine.isFull;
    const step = bench.step();
    if (step.do === 'wait') bench.nowMs = Math.max(bench.nowMs + 1, step.untilMs);
    if (chance() < 0.5) bench.takeReports();
  }
  bench.bus.up = true;
  bench.hangs = false;
  bench.machine.isFull = false;
  bench.machine.refusesAction = () => undefined;
  bench.restart();
  bench.pass(400_000);
}

it(`ends with the old or the new config, whenever it is killed (${SEEDS} seeds)`, () => {
  const verdicts = new Map<string, number>();
  for (let seed = 1; seed <= SEEDS; seed++) {
    const chance = chances(seed);
    const { bench, actions } = scene(chance);
    storm(bench, chance);
    const journal = bench.machine.readJournal();
    const named = {
      seed,
      files: Object.fromEntries(bench.machine.files),
      work: journal.work,
      report: [bench.last?.hash, bench.last?.lease, bench.last?.restored],
    };
    expect(named).toEqual({
      seed,
      files: journal.inForce === B ? NEW : OLD,
      work: undefined,
      report: [journal.inForce, 'l2', true],
    });
    expect(journal.lastDealt?.verdict === 'applied').toBe(journal.inForce === B);
    // Services run with the current content, if the actions are responsible for it.
    if (actions.length > 0)
      expect({ seed, running: Object.fromEntries(bench.machine.running) }).toEqual({ seed, running: named.files });
    expect(bench.bus.status).toMatchObject({ lease: 'l2', hash: journal.inForce, verdict: journal.lastDealt?.verdict });
    verdicts.set(journal.lastDealt?.verdict ?? '', (verdicts.get(journal.lastDealt?.verdict ?? '') ?? 0) + 1);
  }
  expect([...verdicts.keys()].sort()).toEqual(['applied', 'failed', 'invalid']);
});
