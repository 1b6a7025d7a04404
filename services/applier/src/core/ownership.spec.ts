import { forward, newJournal, type Journal } from './journal.js';
import { Ownership, type OwnershipEffect, type StoredValue } from './ownership.js';
import { lease } from '../testing/memory-node.js';

const NODE = 'f-1';
const FIRST = newJournal(NODE, '');
const READ_MS = 1_000;
const APPLY_MS = 60_000;
/** A journal in the middle of a lease that ends at 61 s. */
const WORKING: Journal = {
  ...FIRST,
  work: forward(lease({ node: NODE, applyMs: APPLY_MS }), READ_MS, 'boot', {
    probes: {},
    toUndo: [],
    changed: [],
    scope: { touched: [], aside: {} },
  }),
};
const DEGRADED: Journal = { ...FIRST, sound: false };
const FAILURE = { fault: 'node', reason: '', probe: '' } as const;
const CODEC = { encode: JSON.stringify, decode: (text: string) => JSON.parse(text) as Journal };

/** A bucket with one value, and a clock. */
class Bucket {
  value: StoredValue | undefined;
  nowMs = 0;
  reads = 0;
  /** What happens to the next write: its answer is lost, or it never arrives, or is not even sent. */
  nextWrite: 'answer-lost' | 'lost' | 'not-sent' | undefined;
  /** Called with each effect, before it is carried out. */
  before: (effect: OwnershipEffect) => void = () => undefined;

  carry<T>(program: Generator<OwnershipEffect, T, unknown>): T {
    let next = program.next();
    while (next.done !== true) {
      this.before(next.value);
      let answer: unknown;
      try {
        answer = this.answer(next.value);
      } catch (error) {
        next = program.throw(error);
        continue;
      }
      next = program.next(answer);
    }
    return next.value;
  }

  claim(owner: string, isRepeatable = false): Ownership {
    return this.carry(Ownership.claim({ node: NODE, owner, codec: CODEC, first: FIRST, isRepeatable }));
  }

  /** The owner in the value, and its journal. */
  get owner(): string {
    return this.value?.text.slice(0, this.value.text.indexOf('\n')) ?? '';
  }

  private answer(effect: OwnershipEffect): unknown {
    switch (effect.do) {
      case 'now':
        return this.nowMs;
      case 'sleep':
        return void (this.nowMs += effect.ms);
      case 'read-value':
        this.reads += 1;
        return this.value;
      case 'write-value': {
        const fate = this.nextWrite;
        this.nextWrite = undefined;
        if (fate === 'not-sent') return fate;
        if (fate === 'lost') throw new Error('no connection');
        if (effect.revision !== (this.value?.revision ?? 0)) return 'overtaken';
        this.value = { text: effect.text, revision: effect.revision + 1 };
        if (fate === 'answer-lost') throw new Error('no answer');
        return this.value.revision;
      }
    }
  }
}

let bucket: Bucket;
beforeEach(() => (bucket = new Bucket()));

/** A copy that has written this journal. */
function owning(owner: string, journal: Journal, isRepeatable = false): Ownership {
  const ownership = bucket.claim(owner, isRepeatable);
  bucket.carry(ownership.write(journal));
  return ownership;
}

describe('taking over', () => {
  it('takes no time if nobody works on the target', () => {
    owning('one', FIRST);
    expect(bucket.claim('two').journal).toEqual(FIRST);
    expect([bucket.owner, bucket.nowMs]).toEqual(['two', 0]);
  });

  it('waits for the deadline of a lease, and then for calls that were made before', () => {
    owning('one', WORKING);
    let tookMs = 0;
    bucket.before = ({ do: what }) => void (what === 'write-value' && (tookMs = bucket.nowMs));
    expect(bucket.claim('two').journal).toEqual(WORKING);
    expect([tookMs, bucket.nowMs]).toEqual([READ_MS + APPLY_MS + 2_000, READ_MS + APPLY_MS + 12_000]);
  });

  it('waits no longer than until the lease is over', () => {
    const one = owning('one', WORKING);
    bucket.before = ({ do: what }) => {
      if (what !== 'sleep' || bucket.nowMs < 10_000) return;
      bucket.before = () => undefined;
      bucket.carry(one.write(FIRST));
    };
    bucket.claim('two');
    expect([bucket.owner, bucket.nowMs < 15_000]).toEqual(['two', true]);
  });

  it('takes no time if the owner has handed the target over, also in the middle of a lease', () => {
    bucket.carry(owning('one', WORKING).handOver(WORKING));
    expect([bucket.owner, bucket.claim('two').journal, bucket.nowMs]).toEqual(['', WORKING, 0]);
  });

  it('waits for calls that were made before if the target is degraded', () => {
    owning('one', DEGRADED);
    bucket.claim('two');
    expect(bucket.nowMs).toBe(10_000);
  });

  it('waits for such calls too if the answer to its first try was lost', () => {
    owning('one', DEGRADED);
    bucket.nextWrite = 'answer-lost';
    expect(() => bucket.claim('two')).toThrow('no answer');
    expect(bucket.owner).toBe('two');
    bucket.claim('two');
    expect(bucket.nowMs).toBe(10_000);
  });

  it('says what to do about a journal that cannot be used', () => {
    bucket.value = { text: 'one\nnonsense', revision: 4 };
    const codec = { ...CODEC, decode: () => 'not a journal' };
    expect(() => bucket.carry(Ownership.claim({ node: NODE, owner: 'two', codec, first: FIRST }))).toThrow(
      /journals cannot be used: not a journal\. Delete the key/,
    );
  });
});

describe('a write of the journal', () => {
  it('is refused once another copy has taken over, and so is everything after that', () => {
    const one = owning('one', FIRST);
    bucket.claim('two');
    expect(() => bucket.carry(one.write(WORKING))).toThrow('another copy of the applier has taken over f-1');
    expect([one.isLost, bucket.owner]).toEqual([true, 'two']);
    expect(() => bucket.carry(one.fence())).toThrow('taken over');
    bucket.carry(one.handOver(FIRST));
    expect(bucket.owner).toBe('two');
  });

  it('counts if only its answer was lost', () => {
    const one = owning('one', FIRST);
    bucket.nextWrite = 'answer-lost';
    expect(() => bucket.carry(one.write(WORKING))).toThrow('no answer');
    bucket.carry(one.write(DEGRADED));
    expect([one.isLost, bucket.claim('two').journal]).toEqual([false, DEGRADED]);
  });

  it('is refused after somebody has deleted the journal', () => {
    const one = owning('one', FIRST);
    bucket.value = { text: '', revision: 9 };
    expect(() => bucket.carry(one.write(FIRST))).toThrow('taken over');
  });
});

describe('a write to the target', () => {
  it('needs no connection during a lease, and must end one call timeout later', () => {
    const one = owning('one', WORKING);
    bucket.nowMs = READ_MS + APPLY_MS - 1;
    expect([bucket.carry(one.fence()), bucket.reads]).toEqual([READ_MS + APPLY_MS - 1 + 10_000, 1]);
  });

  it.each([
    ['after the deadline', WORKING, READ_MS + APPLY_MS],
    ['without a lease', DEGRADED, 0],
  ])('is allowed %s only while the copy still owns the target', (_when, journal, nowMs) => {
    const one = owning('one', journal);
    bucket.nowMs = nowMs;
    expect(bucket.carry(one.fence())).toBe(nowMs + 10_000);
    bucket.claim('two');
    expect(() => bucket.carry(one.fence())).toThrow('taken over');
  });

  it('has less time if the owner was read slowly: another copy may have taken over meanwhile', () => {
    const one = owning('one', DEGRADED);
    bucket.before = ({ do: what }) => void (what === 'read-value' && (bucket.nowMs += 7_000));
    const untilMs = bucket.carry(one.fence());
    expect([bucket.nowMs, untilMs]).toEqual([7_000, 10_000]);
  });

  it('is not allowed by a lease whose beginning may not be in the journal', () => {
    const one = owning('one', DEGRADED);
    bucket.nextWrite = 'lost';
    expect(() => bucket.carry(one.write(WORKING))).toThrow('no connection');
    bucket.claim('two');
    expect(() => bucket.carry(one.fence())).toThrow('taken over');
  });

  describe('after a write that ends a lease, and has no answer,', () => {
    const ROLLING: Journal = { ...WORKING, work: { ...WORKING.work!, phase: 'rolling-back', failure: FAILURE } };

    /** The lease was confirmed, but its copy does not know that, and rolls back when its time is over. */
    function inDoubt(fate: 'lost' | 'answer-lost'): Ownership {
      const one = owning('one', WORKING);
      bucket.nextWrite = fate;
      expect(() => bucket.carry(one.write(FIRST))).toThrow('no');
      bucket.nextWrite = 'lost';
      expect(() => bucket.carry(one.write(ROLLING))).toThrow('no connection');
      return one;
    }

    it('is not allowed if another copy has taken over', () => {
      const one = inDoubt('answer-lost');
      expect([bucket.claim('two').journal, bucket.nowMs]).toEqual([FIRST, 0]);
      expect(() => bucket.carry(one.fence())).toThrow('taken over');
    });

    it.each(['lost', 'answer-lost'] as const)('is allowed once the journal says that it rolls back (%s)', (fate) => {
      const one = inDoubt(fate);
      bucket.nextWrite = 'lost';
      expect(() => bucket.carry(one.fence())).toThrow('no connection');
      expect(bucket.carry(one.fence())).toBe(10_000);
      bucket.nowMs = READ_MS + APPLY_MS;
      expect(bucket.claim('two').journal).toEqual(ROLLING);
    });
  });

  it('needs no connection either after such a write was not even sent', () => {
    const one = owning('one', WORKING);
    bucket.nextWrite = 'not-sent';
    expect(() => bucket.carry(one.write(FIRST))).toThrow('there is no connection to NATS');
    const { reads } = bucket;
    expect([bucket.carry(one.fence()), bucket.reads]).toEqual([10_000, reads]);
  });

  it('needs no connection either if the journal cannot be told of the rollback', () => {
    const one = owning('one', WORKING);
    bucket.nextWrite = 'lost';
    expect(() => bucket.carry(one.write({ ...WORKING, seq: 2 }))).toThrow('no connection');
    const { reads } = bucket;
    bucket.carry(one.fence());
    expect(bucket.reads).toBe(reads);
  });
});

describe('a target on which a lease may be repeated', () => {
  it('is taken over in the middle of a lease, after calls that were made before', () => {
    const one = owning('one', WORKING, true);
    const { nowMs } = bucket;
    expect(bucket.claim('two', true).journal).toEqual(WORKING);
    expect([bucket.owner, bucket.nowMs - nowMs]).toEqual(['two', 10_000]);
    expect(() => bucket.carry(one.fence())).toThrow('another copy of the applier has taken over f-1');
    expect(() => bucket.carry(one.write(FIRST))).toThrow('taken over');
  });

  it('is written to in a lease only while it is known who owns it', () => {
    const one = owning('one', WORKING, true);
    const { reads } = bucket;
    expect([bucket.carry(one.fence()), bucket.reads]).toEqual([bucket.nowMs + 10_000, reads + 1]);
    bucket.nextWrite = 'lost';
    expect(() => bucket.carry(one.write(FIRST))).toThrow('no connection');
    bucket.nextWrite = 'lost';
    expect(() => bucket.carry(one.fence())).toThrow('no connection');
  });

  it('takes no time to take over if its owner has handed it over', () => {
    const one = owning('one', WORKING, true);
    const { nowMs } = bucket;
    bucket.carry(one.handOver(WORKING));
    bucket.claim('two', true);
    expect(bucket.nowMs).toBe(nowMs);
  });
});
