import {
  accepted,
  committed,
  factOf,
  joined,
  left,
  pool,
  renderedChange,
  renderedNode,
  reviewedNode,
  silent,
  validated,
} from '#libs/testing';
import { schedulerCore } from './index.js';
import { grants, MINUTE, PAST_DEADLINE, Scheduler, types } from './scheduler.fixture.js';
import { retryMs } from './retries.js';

const poolsOf = (...names: readonly string[]) => {
  const s = new Scheduler().given(
    accepted('c9', { apply: names.map((name) => pool(name, 1)) }),
    renderedChange('c9', {}),
    validated('c9'),
  );
  s.when();
  return s.given(committed('c9'));
};

describe('more than a batch can hold', () => {
  /** A fleet in which everything is about to happen at once. */
  const busy = () => {
    const s = poolsOf('a', 'b', 'c', 'd', 'e', 'f', 'g');
    s.when();
    for (const role of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) s.fleet([`${role}0`, `${role}1`], { role });
    s.rolls('c1', ['a0', 'a1'], { maxFailures: 5 });
    s.rolls('c2', ['b0', 'b1'], { maxFailures: 5 });
    s.rolls('c3', ['c0']);
    s.applies('c0');
    s.nodeReports('d0', 'strange');
    s.leaseEnds('d0', 'failed');
    s.reviewed('c4', ['e0']);
    s.given(silent('b1'), committed('c3'), renderedNode('f0', 'x'), reviewedNode('f0', 'x'), left('g1'));
    s.given(joined('h0', { role: 'g' }, { fresh: true }), renderedNode('h0', 'x'), reviewedNode('h0', 'x'));
    s.given(
      factOf('node.reported', {
        node: 'h0',
        hash: 'empty',
        incarnation: 1,
        nonce: 7,
        seq: 1,
        report: 'announced',
        restored: true,
        fresh: true,
      }),
    );
    s.nowMs += PAST_DEADLINE;
    return s;
  };
  const LATER = ['node.unknown', 'rollout.started', 'node.deferred', 'node.lease.granted', 'rollout.succeeded'];

  it('is decided in as many batches as it needs, in order: inputs first, then what follows from them', () => {
    const s = busy();
    const reports = Array.from({ length: 960 }, () => s.message('a1', 'old'));
    const first = s.decide(reports);
    expect([first.facts.length, first.more, first.needs, first.waiting.size]).toEqual([950, true, [], 10]);
    expect(new Set(types(first.facts))).toEqual(new Set(['node.reported']));
    expect(reports.filter((report) => first.waiting.has(report))).toEqual(reports.slice(950));
    const factTypes = types(s.when(...reports));
    expect(factTypes.filter((type) => type === 'node.reported')).toHaveLength(960);
    expect(factTypes).toEqual(expect.arrayContaining(LATER));
  });

  it('is not split if it fits: everything happens in one turn', () => {
    const factTypes = types(busy().when());
    expect(factTypes).toEqual(expect.arrayContaining(LATER));
  });

  it('does not delay the answer to a request', () => {
    const s = busy();
    const reports = Array.from({ length: 960 }, () => s.message('a1', 'old'));
    const pause = { type: 'request', request: { op: 'rollout.pause', change: 'c1', by: 'me', reason: '' } } as const;
    expect(s.decide([...reports, pause]).answers.size).toBe(0);
    expect(types(s.when(...reports, pause))).toContain('rollout.paused');
    expect(s.answers).toMatchObject([{ ok: true }]);
  });
});

describe('old changes and rollouts', () => {
  const ended = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, i) => `c${from + i}`).flatMap((change) => [
      accepted(change),
      renderedChange(change, {}),
      factOf('rollout.started', { change }),
      factOf('rollout.complete', { change }),
      committed(change),
    ]);

  it('are forgotten after eight hundred, except for the latest two hundred and open ones', () => {
    const s = new Scheduler().given(accepted('c1'), ...ended(2, 801));
    expect([s.state.changes.size, s.state.rollouts.size]).toEqual([801, 800]);
    s.given(...ended(802, 802));
    expect([...s.state.changes.keys()]).toEqual(['c1', ...Array.from({ length: 200 }, (_, i) => `c${i + 603}`)]);
    expect([...s.state.rollouts.keys()]).toEqual([...s.state.changes.keys()].slice(1));
  });

  it('are shown no more once they are forgotten', () => {
    const s = new Scheduler().given(...ended(1, 801));
    expect(schedulerCore.forgets).toEqual(['rollouts']);
    expect(schedulerCore.takeTouched(s.state).has('rollouts/c1')).toBe(true);
    expect(schedulerCore.view(s.state, { bucket: 'rollouts', key: 'c1' })).toBeUndefined();
  });

  it('that were rolled out stay when many others are rejected', () => {
    const rejected = Array.from({ length: 800 }, (_, i) => `c${i + 2}`).flatMap((change) => [
      accepted(change),
      factOf('config.rejected', { change, stage: 'review', attempt: 1, reasons: [] }),
    ]);
    const s = new Scheduler().given(...ended(1, 1), ...rejected);
    expect([s.state.changes.size, [...s.state.rollouts.keys()]]).toEqual([201, ['c1']]);
  });
});

describe('a copy that starts from a snapshot', () => {
  it('restarts the wait for the next try of a node, an hour at most', () => {
    const s = new Scheduler().fleet(['n0']);
    s.nodeReports('n0', 'strange');
    s.leaseEnds('n0', 'failed');
    s.after(MINUTE);
    s.leaseEnds('n0', 'failed');
    s.nowMs += MINUTE;
    s.restart();
    expect(s.after(2 * MINUTE - 1)).toEqual([]);
    expect(grants(s.after(1))).toEqual(['n0 corrective old']);
    for (const tries of [3, 4, 5, 6, 7, 8]) {
      s.leaseEnds('n0', 'failed');
      const ms = retryMs('n0', tries);
      if (tries < 7) s.after(ms);
      else {
        s.restart();
        expect(s.after(ms - 1)).toEqual([]);
        s.after(1);
      }
    }
  });

  it('continues after the last report that was processed', () => {
    const s = new Scheduler().fleet(['n0', 'n1']);
    expect(schedulerCore.cursor?.(s.state)).toBe(2);
    s.restart();
    expect(schedulerCore.cursor?.(s.state)).toBe(2);
    s.given(factOf('node.reported', { node: 'n0', hash: 'old', report: 'announced', reportSequence: 1 }));
    expect(schedulerCore.cursor?.(s.state)).toBe(2);
  });
});
