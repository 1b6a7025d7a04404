import fc from 'fast-check';
import { CORDON_ANNOTATION } from '#libs/contracts';
import { cordonWrite, uncordonWrite, type NodeCordon, type NodeWrite } from './index.js';

type Cordoner = 'nobody' | 'sluice' | 'person';

/** A Node on an API server. A write based on an older read is refused. */
class ServedNode {
  revision = 1;
  unschedulable = false;
  /** Who set the current cordon. */
  by: Cordoner = 'nobody';
  annotations: Readonly<Record<string, string>> = {};

  /** `tracks`: whether the API server knows who set which field. */
  constructor(private readonly tracks: boolean) {}

  look(): NodeCordon & { readonly revision: number } {
    const { revision, unschedulable, annotations, by } = this;
    return { revision, unschedulable, annotations, setBySluice: !this.tracks || by !== 'person' };
  }
  set(unschedulable: boolean, by: Cordoner): void {
    if (this.unschedulable === unschedulable) return;
    this.unschedulable = unschedulable;
    this.by = unschedulable ? by : 'nobody';
    this.revision += 1;
  }
  write(write: NodeWrite, revision: number): boolean {
    if (revision !== this.revision) return false;
    const annotations = { ...this.annotations };
    for (const [key, value] of Object.entries(write.annotations)) {
      if (value === null) delete annotations[key];
      else annotations[key] = value;
    }
    if (JSON.stringify(annotations) !== JSON.stringify(this.annotations)) this.revision += 1;
    this.annotations = annotations;
    if (write.unschedulable !== undefined) this.set(write.unschedulable, 'sluice');
    return true;
  }
}

/** The leases of the node in the ledger, one at a time: draining, then uncordoning, then over. */
class Leases {
  number = 1;
  phase: 'draining' | 'uncordoning' | 'over' = 'draining';
  get lease(): string {
    return `l${this.number}`;
  }
  next(): void {
    if (this.phase === 'draining') this.phase = 'uncordoning';
    else if (this.phase === 'over') [this.number, this.phase] = [this.number + 1, 'draining'];
  }
  givenBack(lease: string): void {
    if (lease === this.lease && this.phase === 'uncordoning') this.phase = 'over';
  }
}

/**
 * A copy of the service. It reads the Node, later the lease, and later still it writes. It may pause between any two.
 */
class Copy {
  private node: ReturnType<ServedNode['look']> | undefined;
  private lease: { readonly id: string; readonly phase: Leases['phase'] } | undefined;

  constructor(
    private readonly served: ServedNode,
    private readonly leases: Leases,
    private readonly wrote: (write: NodeWrite, before: Cordoner, lease: string) => void,
  ) {}

  step(): void {
    const { served, leases } = this;
    if (this.node === undefined) this.node = served.look();
    else if (this.lease === undefined) this.lease = { id: leases.lease, phase: leases.phase };
    else {
      const { id, phase } = this.lease;
      const write =
        phase === 'draining'
          ? cordonWrite(this.node, id)
          : phase === 'uncordoning'
            ? uncordonWrite(this.node, id)
            : undefined;
      if (write === undefined && phase === 'uncordoning') leases.givenBack(id);
      const before = served.by;
      if (write !== undefined && served.write(write, this.node.revision)) this.wrote(write, before, id);
      [this.node, this.lease] = [undefined, undefined];
    }
  }
}

const STEPS = ['first copy', 'second copy', 'lease', 'cordon'] as const;

it.each([
  ['if the API server records who set a field', true, [...STEPS, 'uncordon']],
  // Here a person's cordon cannot be distinguished from Sluice's own if the person uncordons and cordons again.
  ['if it does not, and people only cordon', false, STEPS],
] as const)(
  'I5: whatever two copies, leases and people do, Sluice removes only its own cordon and leaves none behind, %s',
  (_, tracks, drawn) => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...drawn), { minLength: 1, maxLength: 120 }), (steps) => {
        const [served, leases] = [new ServedNode(tracks), new Leases()];
        const over = new Set<string>();
        const wrote = (write: NodeWrite, before: Cordoner, lease: string): void => {
          if (write.unschedulable === false) expect(before).toBe('sluice');
          expect({ lease, cordonedWhenOver: write.unschedulable === true && over.has(lease) }).toEqual({
            lease,
            cordonedWhenOver: false,
          });
        };
        const copies = [new Copy(served, leases, wrote), new Copy(served, leases, wrote)];
        const note = (): void => void (leases.phase === 'over' && over.add(leases.lease));
        for (const step of steps) {
          if (step === 'first copy') copies[0]?.step();
          else if (step === 'second copy') copies[1]?.step();
          else if (step === 'lease') leases.next();
          else served.set(step === 'cordon', 'person');
          note();
        }
        // People stop, the lease ends, and both copies get enough time.
        if (leases.phase === 'draining') leases.next();
        for (let n = 0; n < 40; n += 1) {
          for (const copy of copies) copy.step();
          note();
        }
        expect(leases.phase).toBe('over');
        expect(served.by).not.toBe('sluice');
        expect(served.annotations[CORDON_ANNOTATION]).toBeUndefined();
      }),
      { seed: 1, numRuns: 3_000 },
    );
  },
);
