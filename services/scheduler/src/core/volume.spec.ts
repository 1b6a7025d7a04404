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
    s.reports_('d0', 'strange');
    s.answers_('d0', 'failed');
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

  it('is decided in as many batches as it takes, in order: what came in first, then what follows from it', () => {
    const s = busy();
    const reports = Array.from({ length: 960 }, () => s.message('a1', 'old'));
    const first = s.decide(reports);
    expect([first.facts.length, first.more, first.needs, first.held.size]).toEqual([950, true, [], 10]);
    expect(new Set(types(first.facts))).toEqual(new Set(['node.reported']));
    expect(reports.filter((report) => first.held.has(report))).toEqual(reports.slice(950));
    const said = types(s.when(...reports));
    expect(said.filter((type) => type === 'node.reported')).toHaveLength(960);
    expect(said).toEqual(expect.arrayContaining(LATER));
  });

  it('is not asked for when there is none: all comes in one turn', () => {
    const said = types(busy().when());
    expect(said).toEqual(expect.arrayContaining(LATER));
  });

  it('answers a request in its turn', () => {
    const s = busy();
    const reports = Array.from({ length: 960 }, () => s.message('a1', 'old'));
    const asked = { type: 'request', request: { op: 'rollout.pause', change: 'c1', by: 'me', reason: '' } } as const;
    expect(s.decide([...reports, asked]).answers.size).toBe(0);
    expect(types(s.when(...reports, asked))).toContain('rollout.paused');
    expect(s.answers).toMatchObject([{ ok: true }]);
  });
});

describe('changes and rollouts of long ago', () => {
  const ended = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, i) => `c${from + i}`).flatMap((change) => [
      accepted(change),
      renderedChange(change, {}),
      factOf('rollout.started', { change }),
      factOf('rollout.complete', { change }),
      committed(change),
    ]);

  it('are forgotten past four hundred, but for the latest two hundred and what is open', () => {
    const s = new Scheduler().given(accepted('c1'), ...ended(2, 400));
    expect([s.state.changes.size, s.state.rollouts.size]).toEqual([400, 399]);
    s.given(...ended(401, 401));
    expect([...s.state.changes.keys()]).toEqual(['c1', ...Array.from({ length: 200 }, (_, i) => `c${i + 202}`)]);
    expect([...s.state.rollouts.keys()]).toEqual([...s.state.changes.keys()].slice(1));
  });
});

describe('a copy that starts from a snapshot', () => {
  it('waits as long again for the next try of a node, and at most an hour', () => {
    const s = new Scheduler().fleet(['n0']);
    s.reports_('n0', 'strange');
    s.answers_('n0', 'failed');
    s.after(MINUTE);
    s.answers_('n0', 'failed');
    s.nowMs += MINUTE;
    s.restart();
    expect(s.after(2 * MINUTE - 1)).toEqual([]);
    expect(grants(s.after(1))).toEqual(['n0 corrective old']);
    for (const tries of [3, 4, 5, 6, 7, 8]) {
      s.answers_('n0', 'failed');
      const ms = retryMs('n0', tries);
      if (tries < 7) s.after(ms);
      else {
        s.restart();
        expect(s.after(ms - 1)).toEqual([]);
        s.after(1);
      }
    }
  });

  it('goes on from the report that was taken last', () => {
    const s = new Scheduler().fleet(['n0', 'n1']);
    expect(schedulerCore.cursor?.(s.state)).toBe(2);
    s.restart();
    expect(schedulerCore.cursor?.(s.state)).toBe(2);
    s.given(factOf('node.reported', { node: 'n0', hash: 'old', report: 'announced', reportSequence: 1 }));
    expect(schedulerCore.cursor?.(s.state)).toBe(2);
  });
});
