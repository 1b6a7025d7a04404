import { BEGINNING, leadingTerm, transition, type LeadershipEvent, type LeadershipStatus } from './leadership.js';

const after = (...events: readonly (LeadershipEvent | LeadershipEvent['type'])[]): LeadershipStatus =>
  events
    .map((event): LeadershipEvent => (typeof event === 'string' ? ({ type: event } as LeadershipEvent) : event))
    .reduce(transition, BEGINNING);
const started = ['fold-started', 'caught-up'] as const;
const leads = [...started, 'elected', 'took-over'] as const;
const halted: LeadershipEvent = {
  type: 'halted',
  reason: 'sequence 2 is cannot be decoded',
  halt: { cause: 'unreadable-fact', sequence: 2, fold: 'reread' },
};
const failed: LeadershipEvent = { type: 'blocked', reason: 'again and again' };

describe('a copy', () => {
  it.each<readonly [string, LeadershipStatus, Partial<LeadershipStatus> | object]>([
    ['follows when it has read the ledger to its end', after(...started), { phase: 'following' }],
    ['ignores that it caught up before its fold has started', after('caught-up'), BEGINNING],
    ['takes over when it is elected', after(...started, 'elected'), { phase: 'taking-over', term: 1 }],
    ['takes over as soon as it can if it was elected before', after('elected', ...started), { phase: 'taking-over' }],
    ['leads after it took over', after(...leads), { phase: 'leading', behind: false, term: 1 }],
    ['does not take over without being elected', after(...started, 'took-over'), { phase: 'following' }],
    ['numbers each of its terms', after(...leads, 'deposed', 'elected', 'took-over'), { phase: 'leading', term: 2 }],
    ['follows when another leads', after(...leads, 'deposed'), { phase: 'following' }],
    ['keeps leading without a connection, but may be behind', after(...leads, 'connection-changed'), { behind: true }],
    ['is not behind after it caught up', after(...leads, 'connection-changed', 'caught-up'), { behind: false }],
    [
      'keeps its fold and reads on if it was deposed meanwhile',
      after(...leads, 'connection-changed', 'deposed'),
      { phase: 'starting', fold: 'kept', elected: false },
    ],
    [
      'starts its takeover again after the connection was lost',
      after(...started, 'elected', 'connection-changed'),
      { phase: 'starting', fold: 'kept', elected: true },
    ],
    [
      'reads its fold again from the ledger after the fold was lost',
      after(...leads, 'fold-lost'),
      { phase: 'starting', fold: 'ledger', elected: true },
    ],
    [
      'decides nothing while it is halted',
      after(...leads, halted),
      { phase: 'halted', reason: halted.reason, elected: true },
    ],
    [
      'neither leads nor follows while it is halted',
      after(...leads, halted, 'deposed', 'elected', 'took-over', 'caught-up'),
      { phase: 'halted', elected: true, term: 2 },
    ],
    [
      'reads the ledger again after it was freed',
      after(...leads, halted, 'deposed', 'freed'),
      { phase: 'starting', fold: 'reread', elected: false },
    ],
    [
      'looks for a snapshot again if it could not start',
      after({ type: 'halted', reason: '', halt: { cause: 'trimmed', snapshots: [] } }, 'freed'),
      { phase: 'starting', fold: 'snapshot' },
    ],
    [
      'says why its decisions fail, in every phase',
      after(...leads, failed, 'deposed'),
      { phase: 'following', blocked: 'again and again' },
    ],
    [
      'is no longer blocked after a decision succeeded',
      after(...leads, failed, 'succeeded'),
      { phase: 'leading', blocked: undefined },
    ],
    ['stays stopped', after(...leads, 'stopped', 'elected', 'took-over', 'freed'), { phase: 'stopped' }],
  ])('%s', (_name, status, expected) => {
    expect(status).toMatchObject(expected);
  });

  it('takes inputs only while it leads', () => {
    expect(
      [after(), after(...started), after(...started, 'elected'), after(...leads), after(...leads, halted)].map(
        leadingTerm,
      ),
    ).toEqual([undefined, undefined, undefined, 1, undefined]);
  });

  it('returns the same object when an event changes nothing', () => {
    const status = after(...leads);
    expect(transition(status, { type: 'elected' })).toBe(status);
    expect(transition(status, { type: 'succeeded' })).toBe(status);
  });
});
