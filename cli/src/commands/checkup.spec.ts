import type { Inspection } from '#libs/client';
import { SERVICES, type StatusView } from '#libs/contracts';
import { PLAIN, changeView, rolloutView, nodeView } from '../fakes.fixture.js';
import { checkUp, overQuotaOn } from './checkup.js';
import { checkupScreen } from './doctor.js';

const text = (...lines: string[]): string => lines.join('\n');

describe('the doctor', () => {
  const well: Inspection = {
    server: { url: 'nats://h:4222', version: '2.12.15', lacksJetStream: undefined },
    topology: [],
    ledger: { first: 1, last: 9, messages: 9, bytes: 2_097_152, ageMs: 0 },
    snapshots: {},
    services: SERVICES.map((name) => ({ name, copies: name === 'merger' ? 2 : 1, halted: '', notes: [] })),
    objects: { bytes: 0, maxBytes: 2 ** 30 },
    viewsAhead: [],
    changes: { bytes: 1_000, maxBytes: 268_435_456 },
    unread: [],
    poison: [],
  };
  test('says that all is well', () => {
    expect(checkupScreen(checkUp(well, [nodeView('n1')], []), PLAIN)).toBe(
      text(
        '✔ nats-server          2.12.15 at nats://h:4222; the ledger has 9 facts, 2.0 MiB',
        '✔ streams and buckets  as expected',
        '✔ merger               2 copies',
        '✔ validator            1 copy',
        '✔ scheduler            1 copy',
        '✔ drain                1 copy',
        '✔ inventory            1 copy',
        '✔ nodes                1, all reporting',
        '',
        'No problems found.',
      ),
    );
  });

  test('names what lacks JetStream, and not what follows from it', () => {
    const bad = (lacksJetStream: 'server' | 'account') =>
      checkUp({ ...well, server: { ...well.server, lacksJetStream } }, [nodeView('n1')], [])
        .filter(({ state, what }) => state === 'bad' || what === 'streams and buckets')
        .map(({ what, detail, todo }) => `${what} ${detail} → ${todo}`);
    expect([...bad('server'), ...bad('account')]).toEqual([
      'nats-server nats://h:4222 (2.12.15) runs without JetStream → start it with -js, or add jetstream {} to its config; if it is a leaf node, check its link to the hub',
      "nats-server nats://h:4222 (2.12.15) has no JetStream for the account of this user → set jetstream: enabled in that account in the server's config, or connect as a user of another account",
    ]);
  });

  test('names the changes that no service has read', () => {
    const notes = (count: number) =>
      checkUp({ ...well, unread: Array.from({ length: count }, (_, i) => `c${i + 7}`) }, [nodeView('n1')], [])
        .filter(({ state }) => state === 'note')
        .map(({ what, detail }) => `${what}: ${detail}`);
    expect(notes(0)).toEqual([]);
    expect(notes(2)).toEqual(['changes: no service has read c7, c8 yet']);
    expect(notes(8)).toEqual(['changes: no service has read c7, c8, c9, c10, c11 and 3 more changes yet']);
  });

  test('names the sources whose changes were rejected today because of their quota', () => {
    const rejected = (number: number, source: string, day = '2026-11-23', code = 'over-quota') =>
      changeView({
        change: `c${number}`,
        source,
        phase: 'rejected',
        endedAt: `${day}T10:00:00Z`,
        reasons: [{ fragment: '', field: '', code, message: 'no', nodes: [] }],
      });
    const changes = [
      rejected(3, 'ci'),
      rejected(10, 'ci'),
      rejected(9, 'ci'),
      rejected(11, 'lab', '2026-11-22'),
      rejected(12, 'lab', '2026-11-23', 'conflict'),
      rejected(13, 'git'),
    ];
    const found = overQuotaOn(new Date('2026-11-23T12:00:00Z'), changes);
    const bad = checkUp(well, [nodeView('n1')], [], [], [], { overQuota: found }).filter(
      ({ state }) => state === 'bad',
    );
    expect(bad.map(({ what, detail }) => `${what} ${detail}`)).toEqual([
      'source ci publishes more than its quota: at least 3 of its changes were rejected today, c10 was the last',
      'source git publishes more than its quota: at least 1 of its changes were rejected today, c13 was the last',
    ]);
  });

  test('says when the stream of changes is nearly full', () => {
    const checks = (bytes: number): readonly string[] =>
      checkUp({ ...well, changes: { bytes, maxBytes: 268_435_456 } }, [nodeView('n1')], [])
        .filter(({ state }) => state === 'bad')
        .map(({ what, detail }) => `${what} ${detail}`);
    expect(checks(214_000_000)).toEqual([]);
    expect(checks(215_000_000)).toEqual([
      'stream CHANGES is 80 % full (205 of 256 MiB); when it is full, nobody can publish changes',
    ]);
  });

  test('counts a failed rollback and drift as problems, and does not call a fleet with notes perfect', () => {
    const fine = {
      restored: true,
      deferred: '',
      incompatible: false,
      drifted: [],
      failingProbes: [],
      notUndone: [],
      leftovers: [],
    };
    const status = { ...fine, node: 'n1', incarnation: 1 };
    const closing = (change: object): string =>
      checkupScreen(checkUp(well, [nodeView('n1')], [], [{ ...status, ...change } as unknown as StatusView]), PLAIN)
        .split('\n')
        .slice(-4)
        .join('\n');
    expect(closing({ restored: false })).toBe(
      text(
        '✖ degraded             rollback failed on 1 node: n1',
        '                       → see sluice why n1',
        '',
        '1 problem found.',
      ),
    );
    expect(closing({ drifted: ['/etc/motd'] })).toContain('✖ drifted');
    expect(
      closing({ drifted: ['/b: missing', '/mnt/a: cannot be read: the file system at /mnt does not answer'] }),
    ).toBe(
      text(
        '✖ unreadable           1 node cannot read what it manages: n1 (/mnt/a: cannot be read: the file system at /mnt does not answer)',
        '                       → fix this on the node',
        '',
        '2 problems found.',
      ),
    );
    expect(closing({ unavailable: 'no answer in 5 s' })).toBe(
      text(
        '✖ unavailable          1 target cannot be used: n1 (no answer in 5 s)',
        '                       → they get their config when that is over',
        '',
        '1 problem found.',
      ),
    );
    expect(closing({ failingProbes: [{ probe: 'app', reason: 'it says no' }] })).toBe(
      text(
        '✖ unhealthy            probes fail on 1 node: n1 (app: it says no)',
        '                       → see sluice why n1',
        '',
        '1 problem found.',
      ),
    );
    expect(closing({ leftovers: ['KubeObjects/a: Thing/x: it is still being deleted'] })).toContain(
      text(
        '· left over            what was deleted is still there on 1 node: n1',
        '                       → see sluice why n1',
      ),
    );
    expect(closing({ notUndone: ['Exec/x', 'Exec/y'] })).toBe(
      text(
        '✖ partly rolled back   1 node was rolled back, except for commands that were not undone: n1 (except Exec/x, Exec/y)',
        '                       → undo on the node what these commands did, and give each Exec an undo; this message ends when the node applies its next change',
        '',
        '1 problem found.',
      ),
    );
    expect(closing({ deferred: 'x' })).toContain('No problems found, but 1 note: see above.');
  });

  test('notes an object store that is nearly full', () => {
    const notes = (bytes: number, maxBytes: number): readonly string[] =>
      checkUp({ ...well, objects: { bytes, maxBytes } }, [nodeView('n1')], [])
        .filter(({ state }) => state === 'note')
        .map(({ what, detail }) => `${what} ${detail}`);
    expect([notes(79, 100), notes(10 ** 9, 0)]).toEqual([[], []]);
    expect(notes(80 * 2 ** 20, 100 * 2 ** 20)).toEqual(['object store is 80 % full (80 of 100 MiB)']);
  });

  test('notes that the ledger could be shorter, and which service prevents that', () => {
    const notes = (days: number, merger: number): readonly string[] =>
      checkUp(
        { ...well, ledger: { ...well.ledger, ageMs: days * 86_400_000 }, snapshots: { merger, drain: 2 } },
        [nodeView('n1')],
        [],
      )
        .filter(({ state }) => state === 'note')
        .map(({ what, detail }) => `${what} ${detail}`);
    expect([notes(90, 1), notes(170, 2)]).toEqual([[], []]);
    expect(notes(91, 1)).toEqual([
      'ledger holds 91 days of facts: it is trimmed once every service has two snapshots, and merger has fewer than two',
    ]);
    expect(notes(181, 2)).toEqual([
      'ledger holds 181 days of facts: it is trimmed once every service has two snapshots',
    ]);
  });

  test('says how to fix everything that is wrong', () => {
    const ill: Inspection = {
      ...well,
      server: { ...well.server, version: '2.10.1' },
      topology: ['stream LEDGER is missing'],
      viewsAhead: ['rollouts'],
      services: [
        { name: 'merger', copies: 1, halted: 'met version 2', notes: [] },
        {
          name: 'gateway',
          copies: 2,
          halted: '',
          notes: [{ state: 'bad', words: 'its certificate ran out', todo: 'put another in its place' }],
        },
      ],
      poison: [{ stream: 'REPORTS', sequence: 4, subject: 'node.applied.n1', reason: 'not JSON' }],
    };
    const checks = checkUp(ill, [nodeView('n1', 'silent')], [rolloutView({ stalledBy: ['n1'] })]).filter(
      ({ state }) => state !== 'good',
    );
    expect(checks.map(({ what }) => what)).toEqual([
      'nats-server',
      'streams and buckets',
      'merger',
      'validator',
      'scheduler',
      'drain',
      'inventory',
      'gateway',
      'bucket rollouts',
      'REPORTS 4',
      'nodes',
      'rollout c7',
    ]);
    expect(checks.filter(({ state, todo }) => state !== 'bad' || todo === '')).toEqual([]);
  });
});
