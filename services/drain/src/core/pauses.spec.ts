import fc from 'fast-check';
import { KEEP_PAUSED_ANNOTATION, PAUSE_ANNOTATION, UNPAUSED_ANNOTATION } from '#libs/contracts';
import type { PausedObject } from '#libs/manifests';
import { factOf, LedgerCopy, MemoryLedger } from '#libs/testing';
import { drainCore, pausersOf, pauseStep, unpauseWrite, type Input, type Pauser, type State } from './index.js';
import type { PausableState, PauseStep, PauseWrite } from './pauses.js';

const WORKER: PausedObject = {
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfigPool',
  namespace: '',
  name: 'worker',
  waitWhile: ['Updating'],
};
const pauser = (lease: string, objects = [WORKER]): Pauser => ({ lease, pool: 'edge', objects });

/** An object on an API server. A write based on an older read is refused. */
class Served {
  private count = 1;
  paused = false;
  by: 'nobody' | 'sluice' | 'person' = 'nobody';
  annotations: Readonly<Record<string, string>> = {};
  conditions: readonly string[] = [];
  isBehind = false;

  look(): PausableState {
    const { paused, annotations, conditions, isBehind, by } = this;
    const revision = String(this.count);
    return { uid: 'u', revision, paused, annotations, conditions, isBehind, setBySluice: by !== 'person' };
  }
  set(paused: boolean, by: 'sluice' | 'person'): this {
    if (this.paused !== paused) [this.paused, this.by, this.count] = [paused, by, this.count + 1];
    return this;
  }
  write(write: PauseWrite | undefined, revision = String(this.count)): boolean {
    if (revision !== String(this.count)) return false;
    const annotations = Object.entries({ ...this.annotations, ...write?.annotations });
    const after = Object.fromEntries(annotations.filter((entry): entry is [string, string] => entry[1] !== null));
    if (JSON.stringify(after) !== JSON.stringify(this.annotations)) this.count += 1;
    this.annotations = after;
    if (write?.paused !== undefined) this.set(write.paused, 'sluice');
    return true;
  }
  pause(lease: string, others: readonly string[] = []): PauseStep {
    const pausers = [lease, ...others].map((one) => pauser(one));
    const step = pauseStep(WORKER, this.look(), { lease, pool: 'edge' }, pausers);
    if ('write' in step) this.write(step.write);
    return step;
  }
  end(lease: string, others: readonly Pauser[] = []): this {
    this.write(unpauseWrite(WORKER, this.look(), lease, others));
    return this;
  }
  get mark(): unknown {
    return this.annotations[PAUSE_ANNOTATION];
  }
}

describe('an object to pause', () => {
  it('is paused with a mark that names the drain, and unpaused after it', () => {
    const served = new Served();
    expect(served.pause('l1').type).toBe('write');
    expect([served.paused, served.mark]).toEqual([true, '{"lease":"l1","pool":"edge"}']);
    expect(served.pause('l1').type).toBe('held');
    served.end('l1');
    expect([served.paused, served.annotations]).toEqual([false, { [UNPAUSED_ANNOTATION]: 'l1' }]);
  });

  it('stays paused until the last drain ends, whichever pool it is of', () => {
    const served = new Served();
    served.pause('l1');
    expect(served.pause('l2', ['l1']).type).toBe('held');
    served.end('l1', [pauser('l2')]);
    expect([served.paused, served.mark]).toEqual([true, '{"lease":"l2","pool":"edge"}']);
    expect(served.end('l2', [pauser('l3', [{ ...WORKER, name: 'other' }])]).paused).toBe(false);
  });

  it('is one object, whatever the version of its API', () => {
    const served = new Served();
    served.pause('l1');
    const other = pauser('l2', [{ ...WORKER, apiVersion: 'machineconfiguration.openshift.io/v1beta1' }]);
    expect(served.end('l1', [other]).paused).toBe(true);
  });

  it('stays as it is if a person had paused it', () => {
    const served = new Served().set(true, 'person');
    expect(served.pause('l1').type).toBe('held');
    expect([served.end('l1').paused, served.annotations]).toEqual([true, {}]);
  });

  it('stays paused if a person unpaused it and paused it again, or wants it kept so', () => {
    const again = new Served();
    again.pause('l1');
    again.set(false, 'person').set(true, 'person').end('l1');
    const kept = new Served();
    kept.pause('l1');
    kept.annotations = { ...kept.annotations, [KEEP_PAUSED_ANNOTATION]: 'a fan is broken' };
    kept.end('l1');
    expect([again.paused, again.mark, kept.paused, kept.mark]).toEqual([true, undefined, true, undefined]);
  });

  it('is paused again if a person unpauses it in the middle, but not in a loop', () => {
    const served = new Served();
    served.pause('l1');
    served.set(false, 'person');
    expect(served.pause('l1')).toMatchObject({ type: 'restore', reason: expect.stringMatching(/somebody unpaused/) });
    expect(served.paused).toBe(true);
  });

  it('is not paused while its controller is at work, or has not seen its latest spec', () => {
    const served = new Served();
    served.conditions = ['Degraded', 'Updating'];
    expect(served.pause('l1')).toEqual({ type: 'wait', reason: 'its condition Updating is True' });
    served.conditions = [];
    served.isBehind = true;
    expect(served.pause('l1')).toEqual({ type: 'wait', reason: 'its controller has not processed its latest spec' });
    served.isBehind = false;
    expect([served.pause('l1').type, served.paused]).toEqual(['write', true]);
  });

  it('is not unpaused by a copy that saw all drains end before another one began', () => {
    const served = new Served();
    served.pause('l1');
    const late = served.look();
    const write = unpauseWrite(WORKER, late, 'l1', []);
    expect([served.pause('l2').type, served.pause('l2').type]).toEqual(['write', 'held']);
    expect([served.write(write, late.revision), served.paused]).toEqual([false, true]);
  });

  it('is not paused by a copy that read it before the drain ended', () => {
    const served = new Served();
    const late = served.look();
    const step = pauseStep(WORKER, late, { lease: 'l1', pool: 'edge' }, [pauser('l1')]);
    served.end('l1');
    expect([served.write((step as { readonly write: PauseWrite }).write, late.revision), served.paused]).toEqual([
      false,
      false,
    ]);
  });
});

/** The drains in the ledger, all at once. */
type Phase = 'draining' | 'uncordoning' | 'over';
const LEASES = ['l1', 'l2', 'l3'] as const;

/** The drain of one lease in one copy: reads the object, later the ledger, and later still it writes. */
class Copy {
  private known: Phase = 'draining';
  private seen: PausableState | undefined;
  private read: { readonly phase: Phase; readonly pausers: readonly Pauser[] } | undefined;

  constructor(
    private readonly lease: string,
    private readonly served: Served,
    private readonly phases: Map<string, Phase>,
    private readonly events: { held(lease: string): void; unpauses(by: string): void },
  ) {}

  step(): void {
    const { lease, served, phases } = this;
    if (this.seen === undefined) return void (this.seen = served.look());
    if (this.read === undefined) {
      const pausers = LEASES.filter((one) => phases.get(one) === 'draining').map((one) => pauser(one));
      return void (this.read = { phase: phases.get(lease) ?? 'over', pausers });
    }
    const { seen, read } = this;
    const { known } = this;
    [this.seen, this.read, this.known] = [undefined, undefined, read.phase];
    if (read.phase === 'draining') {
      const step = pauseStep(WORKER, seen, { lease, pool: 'edge' }, read.pausers);
      if (step.type === 'held') this.events.held(lease);
      else if ('write' in step) served.write(step.write, seen.revision);
    } else if (read.phase === 'uncordoning' && known === 'uncordoning') {
      const write = unpauseWrite(WORKER, seen, lease, read.pausers);
      if (write === undefined) return void (phases.get(lease) === 'uncordoning' && phases.set(lease, 'over'));
      const by = served.by;
      if (served.write(write, seen.revision) && write.paused === false) this.events.unpauses(by);
    }
  }
}

it('whatever copies, drains and people do, Sluice unpauses only what it paused, after the last drain, and always', () => {
  const copyNames = LEASES.flatMap((lease) => [lease, `other ${lease}`]);
  // Most rounds run undisturbed, so that runs get far.
  const steps = [
    ...copyNames,
    ...copyNames,
    ...copyNames.map((name) => `round of ${name}`),
    'end l1',
    'end l2',
    'end l3',
  ];
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...steps, 'begin l3', 'pause', 'unpause'), { minLength: 20, maxLength: 150 }),
      (drawn) => {
        const served = new Served();
        const phases = new Map<string, Phase>([
          ['l1', 'draining'],
          ['l2', 'draining'],
        ]);
        /** Drains that rely on the pause: no person has unpaused it since they saw it. */
        const relying = new Set<string>();
        const events = {
          held: (lease: string) => void (served.paused && relying.add(lease)),
          unpauses: (by: string) => {
            expect(by).toBe('sluice');
            expect([...relying].filter((lease) => phases.get(lease) === 'draining')).toEqual([]);
          },
        };
        const of = (lease: string): Copy => new Copy(lease, served, phases, events);
        const copies = new Map(copyNames.map((name) => [name, of(name.slice(-2))]));
        for (const step of drawn) {
          const [verb, lease = ''] = step.split(' ');
          if (verb === 'end' && phases.get(lease) === 'draining') phases.set(lease, 'uncordoning');
          else if (verb === 'begin' && !phases.has(lease)) phases.set(lease, 'draining');
          else if (verb === 'pause' || verb === 'unpause') {
            served.set(verb === 'pause', 'person');
            if (verb === 'unpause') relying.clear();
          } else
            for (let n = step.startsWith('round') ? 3 : 1; n > 0; n -= 1)
              copies.get(step.replace('round of ', ''))?.step();
        }
        for (const [lease, phase] of phases) if (phase === 'draining') phases.set(lease, 'uncordoning');
        for (let n = 0; n < 60; n += 1) for (const copy of copies.values()) copy.step();
        expect([...phases.values()].filter((phase) => phase !== 'over')).toEqual([]);
        expect([served.paused && served.by === 'sluice', served.mark]).toEqual([false, undefined]);
      },
    ),
    { seed: 1, numRuns: 5_000 },
  );
});

describe('the ledger', () => {
  const lease = { node: 'n0', pool: 'edge', change: 'c1', lease: 'l1' };
  const granted = (pause: readonly object[]) =>
    factOf('node.lease.granted', {
      ...lease,
      kind: 'forward',
      phase: 'draining',
      actions: [{ kind: 'drain' }],
      drain: { pause } as never,
    });
  const names = (state: State): readonly string[] =>
    pausersOf(state).flatMap(({ objects }) => objects.map((o) => o.name));

  it('says which drains need what paused, until their node is to be given back', () => {
    const copy = new LedgerCopy<State, Input>(drainCore('kubernetes'), new MemoryLedger());
    copy.given(granted([WORKER]));
    expect(pausersOf(copy.state)).toEqual([{ lease: 'l1', pool: 'edge', objects: [WORKER] }]);
    copy.given(factOf('node.drained', { ...lease, by: 'kubernetes' }));
    expect(names(copy.state)).toEqual(['worker']);
    copy.given(factOf('node.lease.uncordoning', lease));
    expect(names(copy.state)).toEqual([]);
    expect(copy.state.drains.get('n0')?.pauses).toEqual([WORKER]);
  });

  it('keeps what the pool no longer names until the end of the drain', () => {
    const copy = new LedgerCopy<State, Input>(drainCore('kubernetes'), new MemoryLedger());
    copy.given(granted([WORKER]));
    const infra = { ...WORKER, name: 'infra' };
    copy.given(factOf('node.lease.amended', { ...lease, drain: { pause: [infra] } as never }));
    expect(names(copy.state)).toEqual(['infra', 'worker']);
  });
});
