import type { FoundPath } from '#libs/contracts';
import { cli, type FakeFleet } from '../fakes.fixture.js';

const manifest = (kind: string, path: string, more: object = {}) =>
  JSON.stringify({
    apiVersion: 'sluice.dev/v1alpha1',
    kind,
    metadata: { name: 'one' },
    spec: { nodeSelector: { matchLabels: { role: 'edge' } }, path, ...more },
  });
const MOTD = manifest('File', '/etc/motd', { content: 'x' });

const nodes = (count: number, state = 'ready', role = 'edge') =>
  Object.fromEntries(
    Array.from({ length: count }, (_, i) => `${role}-${i}`).map((node) => [node, [{ node, state, labels: { role } }]]),
  );
const at = (path: string, state: FoundPath['state'], what: string, refused = ''): FoundPath => ({
  path,
  state,
  what,
  refused,
});
const FILE = at('/etc/motd', 'file', 'a file of 3 bytes');

/** The answer to `sluice plan`, and the nodes that were asked. */
async function plan(input: string, fleet: FakeFleet, ...flags: readonly string[]) {
  const askedNodes: string[] = [];
  const answers = { 'ops.config.plan': () => ({ rejected: [], nodes: [] }) };
  const { exit, out } = await cli(
    ['plan', '-f', '-', '-o', 'json', ...flags],
    { answers, askedNodes, ...fleet },
    {},
    input,
  );
  return { exit, asked: askedNodes, ...(JSON.parse(out) as { rejected: unknown[]; warnings: unknown[] }) };
}

describe('plan and apply', () => {
  it.each<[string, string, FoundPath, string, string]>([
    [
      'a File replaces',
      MOTD,
      FILE,
      'path-exists',
      'exists already: a file of 3 bytes; Sluice replaces it, and restores it',
    ],
    [
      'a Link replaces',
      manifest('Link', '/etc/motd', { target: 'x' }),
      at('/etc/motd', 'symlink', 'a symbolic link to y'),
      'path-exists',
      'exists already: a symbolic link to y; Sluice replaces it',
    ],
    [
      'a File does not replace',
      MOTD,
      at('/etc/motd', 'directory', 'a directory', '/etc/motd is a directory'),
      'path-blocked',
      '/etc/motd cannot be used: it is a directory',
    ],
    [
      'a Directory does not replace',
      manifest('Directory', '/etc/motd'),
      at('/etc/motd', 'file', 'a file of 3 bytes', '/etc/motd is a file'),
      'path-blocked',
      '/etc/motd cannot be used: it is a file',
    ],
    [
      'is in the way',
      manifest('File', '/etc/passwd/x', { content: 'x' }),
      at('/etc/passwd/x', 'unreachable', '/etc/passwd is not a directory'),
      'path-blocked',
      '/etc/passwd/x cannot be used: /etc/passwd is not a directory',
    ],
    [
      'the node refuses',
      manifest('File', '/usr/bin/x', { content: 'x', mode: '4755' }),
      at('/usr/bin/x', 'absent', 'nothing', 'mode 4755 needs --allow-setuid on this node'),
      'path-blocked',
      '/usr/bin/x cannot be used: mode 4755 needs --allow-setuid on this node',
    ],
  ])('warn of what %s, and reject it with --strict', async (_what, input, found, code, message) => {
    const published: NonNullable<FakeFleet['published']> = [];
    const fleet = { views: { nodes: nodes(2) }, paths: { 'edge-1': [found] }, published };
    const warning = {
      fragment: expect.stringMatching(/\/one$/) as string,
      code,
      message: expect.stringContaining(message) as string,
      nodes: ['edge-1'],
    };
    expect(await plan(input, fleet)).toMatchObject({ exit: 0, rejected: [], warnings: [warning] });
    expect(await plan(input, fleet, '--strict')).toMatchObject({ exit: 3, rejected: [warning], warnings: [] });
    const applied = await cli(['apply', '-f', '-'], fleet, {}, input);
    expect(applied).toMatchObject({ exit: 0, err: expect.stringContaining(message) as string });
    expect(published).toHaveLength(1);
    const answers = { 'ops.config.plan': () => ({ rejected: [], nodes: [] }) };
    const strict = await cli(['apply', '-f', '-', '--strict'], { ...fleet, answers }, {}, input);
    expect(strict).toMatchObject({ exit: 3, out: '', err: expect.stringContaining(message) as string });
    expect(published).toHaveLength(1);
  });

  it('are rejected by apply --strict together with everything else that is wrong', async () => {
    const rejected = [{ fragment: 'Exec/x', field: 'kind', code: 'capability', message: 'no Exec here', nodes: [] }];
    const answers = { 'ops.config.plan': () => ({ rejected, nodes: [] }) };
    const fleet = { views: { nodes: nodes(1) }, paths: { 'edge-0': [FILE] }, answers };
    const { exit, err } = await cli(['apply', '-f', '-', '--strict'], fleet, {}, MOTD);
    expect([exit, err.match(/no Exec here|exists already/g)]).toEqual([3, ['no Exec here', 'exists already']]);
  });

  it.each([
    ['a directory', at('/srv', 'directory', 'a directory')],
    ['a link that is followed', at('/srv', 'symlink', 'a symbolic link to data')],
  ])('do not warn about a Directory if the path has %s', async (_what, found) => {
    const fleet = { views: { nodes: nodes(1) }, paths: { 'edge-0': [found] } };
    expect(await plan(manifest('Directory', '/srv'), fleet)).toMatchObject({ warnings: [] });
  });

  it('ask about paths as they are on each node', async () => {
    const fleet = { views: { nodes: nodes(1) }, paths: { 'edge-0': [at('/etc/edge', 'file', 'a file')] } };
    const input = manifest('File', '/etc/{{ node.labels.role }}', { content: '' });
    expect(await plan(input, fleet)).toMatchObject({ warnings: [{ code: 'path-exists' }] });
  });

  it.each(['busy', 'silent'] as const)('name a node that is %s, and --strict does not reject that', async (state) => {
    const fleet = { views: { nodes: nodes(3) }, paths: { 'edge-2': state } };
    const warnings = [{ code: 'no-answer', nodes: ['edge-2'] }];
    expect(await plan(MOTD, fleet, '--strict')).toMatchObject({ exit: 0, rejected: [], warnings });
  });

  it('ask only some nodes of a large fleet, and say how many', async () => {
    const all = { ...nodes(200), ...nodes(3, 'silent', 'off'), ...nodes(3, 'ready', 'core') };
    const fleet = { views: { nodes: all }, paths: { 'edge-0': [FILE] } };
    const { asked: askedNodes, warnings } = await plan(MOTD, fleet);
    expect(askedNodes).toHaveLength(10);
    expect(warnings).toMatchObject([
      { message: expect.stringContaining('10 of 200 nodes were asked') as string, nodes: ['edge-0'] },
    ]);
  });

  it('ask nodes with drift first', async () => {
    const drifted = ['edge-7', 'edge-93', 'edge-150'];
    const status = Object.fromEntries(
      drifted.map((node) => [node, [{ node, drifted: ['/etc/motd: is a directory'] }]]),
    );
    const { asked } = await plan(MOTD, { views: { nodes: nodes(200), status } });
    expect([asked.slice(0, 3), asked.length]).toEqual([drifted, 10]);
  });

  it('ask no node about what is committed already', async () => {
    const { metadata, spec, kind } = JSON.parse(MOTD) as { metadata: { name: string }; spec: object; kind: string };
    const fragment = { kind, name: metadata.name, labels: {}, spec };
    const views = (gone: boolean) => ({ nodes: nodes(1), fragments: { 'File.one': [{ fragment, gone }] } });
    expect(await plan(MOTD, { views: views(false) })).toMatchObject({ asked: [] });
    expect(await plan(MOTD, { views: views(true) })).toMatchObject({ asked: ['edge-0'] });
    const other = manifest('File', '/etc/motd', { content: 'y' });
    expect(await plan(other, { views: views(false) })).toMatchObject({ asked: ['edge-0'] });
  });

  it('ask no node if no fragment has a path', async () => {
    const pool = JSON.stringify({
      apiVersion: 'sluice.dev/v1alpha1',
      kind: 'Pool',
      metadata: { name: 'edge' },
      spec: { nodeSelector: {} },
    });
    expect(await plan(pool, { views: { nodes: nodes(2) } })).toMatchObject({ asked: [], warnings: [] });
  });
});
