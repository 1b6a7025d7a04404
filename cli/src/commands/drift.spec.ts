import { ago, cli, type FakeFleet } from '../fakes.fixture.js';

const MOTD = JSON.stringify({
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'File',
  metadata: { name: 'motd' },
  spec: { nodeSelector: {}, path: '/etc/motd', content: 'hello\n' },
});

describe('drift', () => {
  const node = { state: 'ready', labels: {}, unavailable: '', since: '', version: '' };
  const hash = 'a'.repeat(64);
  const status = { restored: true, pool: 'edge', hash, desired: hash, drifted: [], driftedSince: '' };
  const edited = { ...status, node: 'b', drifted: ['/etc/motd: content differs'], driftedSince: ago(300) };
  const views = {
    nodes: { a: [{ ...node, node: 'a' }], b: [{ ...node, node: 'b' }], c: [{ ...node, node: 'c', state: 'gone' }] },
    status: { a: [{ ...status, node: 'a' }], b: [edited], c: [{ ...edited, node: 'c' }] },
  };
  const motd = (content: string) => ({ fragments: [{ kind: 'File', name: 'motd', spec: { content } }] });
  const configs = { ['a'.repeat(64)]: motd('one\n'), ['b'.repeat(64)]: motd('two\n') };

  test('get drift shows each difference; JSON also shows nodes without drift', async () => {
    expect((await cli(['get', 'drift'], { views })).out).toBe(
      'NODE   STATE   POOL   SINCE   DIFFERENCE\nb      ready   edge   5m      /etc/motd: content differs\n',
    );
    const of = { state: 'ready', degraded: false, pool: 'edge', config: 'a'.repeat(64) };
    expect(JSON.parse((await cli(['get', 'drift', '-o', 'json'], { views })).out)).toEqual([
      { node: 'a', ...of, since: null, differences: [] },
      { node: 'b', ...of, since: ago(300), differences: ['/etc/motd: content differs'] },
    ]);
    expect(JSON.parse((await cli(['get', 'drift', 'b', '-o', 'json'], { views })).out)).toMatchObject({ node: 'b' });
    expect((await cli(['get', 'drift', 'a'], { views })).err).toBe('no drift found on 1 node\n');
    expect(await cli(['get', 'drift', 'c'], { views })).toMatchObject({
      exit: 1,
      err: 'error: node c not found: list nodes with sluice get nodes\n',
    });
  });

  test.each([
    [
      'degraded',
      { restored: false },
      'ready',
      'a is degraded: its rollback failed, so it may have a mix of the old and the new config',
    ],
    ['silent', {}, 'silent', 'a is silent: its last report is old, and what changed since is unknown'],
  ])('of a %s node is not called certain', async (_what, more, state, doubt) => {
    const unsure = {
      nodes: { a: [{ ...node, node: 'a', state }] },
      status: { a: [{ ...status, ...more, node: 'a' }] },
    };
    expect((await cli(['get', 'drift'], { views: unsure })).err).toBe(`no drift found on 1 node\n${doubt}\n`);
    expect((await cli(['diff', 'a'], { views: unsure, configs })).err).toBe(
      `a last reported the committed config (aaaaaaaaaaaa)\n${doubt}\n`,
    );
    const [json] = JSON.parse((await cli(['get', 'drift', '-o', 'json'], { views: unsure })).out) as unknown[];
    expect(json).toMatchObject({ state, degraded: 'restored' in more });
  });

  test('diff shows how the node differs from its config, as last reported', async () => {
    const { out, err } = await cli(['diff', 'b'], { views, configs });
    expect(out).toBe('--- config aaaaaaaaaaaa\n+++ b, as last reported\n! /etc/motd: content differs\n');
    expect(err).toBe(
      'b has the committed config (aaaaaaaaaaaa), except for this drift: changes are deferred until it is undone, or the pool has drift: overwrite\n',
    );
    const pools = { edge: [{ pool: 'edge', drift: 'overwrite' }] };
    expect((await cli(['diff', 'b'], { views: { ...views, pools }, configs })).err).toBe(
      'b has the committed config (aaaaaaaaaaaa), except for this drift: the next change of the node overwrites it\n',
    );
    expect((await cli(['diff', 'a'], { views, configs })).err).toBe('a is up to date (config aaaaaaaaaaaa)\n');
    const behind = { ...views, status: { b: [{ ...edited, desired: 'b'.repeat(64) }] } };
    expect((await cli(['diff', 'b'], { views: behind, configs })).out).toMatch(
      /! \/etc\/motd.*\n(.*\n)+- +one\n\+ +two/,
    );
    expect(JSON.parse((await cli(['diff', 'b', '-o', 'json'], { views: behind, configs })).out)).toEqual({
      node: 'b',
      from: 'a'.repeat(64),
      to: 'b'.repeat(64),
      fromConfig: motd('one\n'),
      toConfig: motd('two\n'),
      drift: ['/etc/motd: content differs'],
    });
  });

  test('diff of one config with itself says nothing about the node', async () => {
    const other = 'b'.repeat(64);
    const { exit, err } = await cli(['diff', 'a', '--from', other, '--to', other], { views, configs });
    expect([exit, err]).toEqual([0, 'no differences: both are the config bbbbbbbbbbbb\n']);
  });

  test('diff compares a node whose committed config is incompatible with the config that it keeps', async () => {
    const incompatibleReasons = [{ message: 'node.labels.site is not set' }];
    const kept = { ...edited, desired: '', incompatible: true, incompatibleReasons };
    const run = (...flags: string[]) =>
      cli(['diff', 'b', ...flags], { views: { ...views, status: { b: [kept] } }, configs });
    expect(await run()).toMatchObject({
      exit: 0,
      out: '--- config aaaaaaaaaaaa\n+++ b, as last reported\n! /etc/motd: content differs\n',
      err: 'b keeps the config aaaaaaaaaaaa: the committed config is incompatible with it: node.labels.site is not set\n',
    });
    expect(JSON.parse((await run('-o', 'json')).out)).toMatchObject({ from: hash, to: '', toConfig: null });
  });

  test('diff says that a node has left the fleet', async () => {
    const gone = {
      nodes: { a: [{ ...node, node: 'a', state: 'gone' }] },
      status: { a: [{ ...status, node: 'a', desired: '' }] },
    };
    expect(await cli(['diff', 'a'], { views: gone, configs })).toEqual({
      exit: 0,
      out: '',
      err: 'a has left the fleet; its last report named the config aaaaaaaaaaaa\n',
    });
  });

  describe('that a change would overwrite', () => {
    const planned = { pool: 'edge', from: '', to: '', actions: [], changed: ['/etc/motd'] };
    const drift = ['/etc/motd: content differs'];
    const published: NonNullable<FakeFleet['published']> = [];
    const message = '1 node is deferred until the drift there is undone';
    const reasons = [{ fragment: '', field: '', code: 'drift', message, nodes: ['b'] }];
    /** The answer of the merger if the pool keeps the drift of one node. */
    const plans = ({ strategy }: Record<string, unknown>) => {
      const isStrict = (strategy as { readonly strict?: boolean } | undefined)?.strict === true;
      const nodes = [{ node: 'b', ...planned, drift, deferred: 'drift' }];
      return { rejected: isStrict ? reasons : [], warnings: reasons, nodes, touched: 1, unchanged: 0 };
    };
    const fleet: FakeFleet = { answers: { 'ops.config.plan': plans }, views, published };
    beforeEach(() => void published.splice(0));

    test('is deferred in a plan, and --strict rejects it', async () => {
      const { out } = await cli(['plan', '-f', '-'], fleet, {}, MOTD);
      expect(out).toContain(`! ${message} (b)`);
      expect(out).toContain('Plan: 0 to change (0 with a drain or reboot), 1 deferred, 0 unchanged of 1 selected.');
      const strict = await cli(['plan', '-f', '-', '-o', 'json', '--strict'], fleet, {}, MOTD);
      expect([strict.exit, JSON.parse(strict.out)]).toEqual([3, expect.objectContaining({ rejected: reasons })]);
    });

    test.each([['apply -f -'], ['delete File motd']])('%s --strict is not published', async (argv) => {
      const run = (...flags: string[]) => cli([...argv.split(' '), ...flags], fleet, {}, MOTD);
      const { exit, err } = await run('--strict');
      expect([exit, published]).toEqual([3, []]);
      expect(err).toContain(message);
      expect((await run()).exit).toBe(0);
      expect(published).toHaveLength(1);
    });
  });

  test.each<[string, string[], string]>([
    ['that does not exist', ['z'], 'node z not found: list nodes with sluice get nodes'],
    ['whose config was deleted', ['b', '--from', 'c'.repeat(64)], 'the config cccccccccccc of b is not in the bucket'],
  ])('diff says what to do about a node %s', async (_name, args, message) => {
    const { exit, err } = await cli(['diff', ...args], { views, configs });
    expect([exit, err]).toEqual([1, expect.stringContaining(message)]);
  });
});
