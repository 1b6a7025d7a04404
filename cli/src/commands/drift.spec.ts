import { ago, cli } from '../fakes.fixture.js';

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

  test('get drift shows each place that differs; JSON also shows nodes without drift', async () => {
    expect((await cli(['get', 'drift'], { views })).out).toBe(
      'NODE   STATE   POOL   SINCE   DIFFERENCE\nb      ready   edge   5m      /etc/motd: content differs\n',
    );
    const of = { state: 'ready', pool: 'edge', config: 'a'.repeat(64) };
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

  test('diff shows how the node differs from its config, as last reported', async () => {
    const { out, err } = await cli(['diff', 'b'], { views, configs });
    expect(out).toBe('--- config aaaaaaaaaaaa\n+++ b, as last reported\n! /etc/motd: content differs\n');
    expect(err).toBe('b has the committed config (aaaaaaaaaaaa), except for this drift\n');
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

  test('plan names the nodes that a change passes by, because it would overwrite their drift', async () => {
    const planned = ['a', 'b'].map((name) => ({
      node: name,
      pool: 'edge',
      from: '',
      to: '',
      actions: [],
      changed: [],
    }));
    const answers = { 'ops.config.plan': () => ({ rejected: [], nodes: planned }) };
    const warnings = async (drift: string): Promise<unknown> => {
      const fleet = { answers, views: { ...views, pools: { edge: [{ pool: 'edge', drift }] } } };
      const { out } = await cli(['plan', '-f', '-', '-o', 'json'], fleet, {}, MOTD);
      return (JSON.parse(out) as { warnings: unknown }).warnings;
    };
    expect(await warnings('report')).toMatchObject([
      { code: 'drift', nodes: ['b'], message: expect.stringMatching(/^1 node is deferred until the drift/) as string },
    ]);
    expect(await warnings('overwrite')).toEqual([]);
  });

  test.each<[string, string[], string]>([
    ['that nobody knows', ['z'], 'node z not found: list nodes with sluice get nodes'],
    ['whose config was deleted', ['b', '--from', 'c'.repeat(64)], 'the config cccccccccccc of b is not in the bucket'],
  ])('diff says what to do about a node %s', async (_name, words, message) => {
    const { exit, err } = await cli(['diff', ...words], { views, configs });
    expect([exit, err]).toEqual([1, expect.stringContaining(message)]);
  });
});
