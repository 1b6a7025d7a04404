import type { ListedObject } from '#libs/client';
import { REMOTE_APPLIER } from '#libs/contracts';
import { readManifests } from '#libs/manifests';
import { cli, nodeView } from '../fakes.fixture.js';

const stored = { object: 'app.tar', sha256: 'a'.repeat(64), bytes: 7, storedMs: 0, isWhole: true };
const objects = [stored as unknown as ListedObject];

describe('get -o yaml', () => {
  it('prints objects as a list', async () => {
    expect(await cli(['get', 'objects', '-o', 'yaml'], { objects })).toMatchObject({
      exit: 0,
      out: `- object: app.tar\n  sha256: ${'a'.repeat(64)}\n  bytes: 7\n`,
    });
  });

  it('prints manifests of Kubernetes so that they mean the same when they are published again', async () => {
    const spec = { objects: [{ kind: 'ConfigMap', data: { a: 'yes', b: '0400', c: '1_000', d: 'plain' }, n: 256 }] };
    const view = {
      ledger: 1,
      fragment: { kind: 'KubeObjects', name: 'x', labels: {}, spec },
      change: 'c1',
      gone: false,
    };
    const { out } = await cli(['get', 'fragments', '-o', 'yaml'], {
      views: { fragments: { 'KubeObjects.x': [view] } },
    });
    expect(readManifests(out).manifests).toMatchObject([{ kind: 'KubeObjects', metadata: { name: 'x' }, spec }]);
  });

  it.each(['known-bad', 'fragments', 'objects'])('prints an empty list if there are no %s', async (what) => {
    expect(await cli(['get', what, '-o', 'yaml'], {})).toMatchObject({ exit: 0, out: '[]\n' });
  });
});

describe('a node that did not answer by the deadline of its lease', () => {
  const views = {
    nodes: { n1: [nodeView('n1')], n2: [nodeView('n2')] },
    status: Object.fromEntries(
      ['n1', 'n2'].map((node) => [node, [{ restored: true, deferred: 'unknown: no answer' }]]),
    ),
    leases: { n1: [{ phase: 'settled', because: 'unknown' }], n2: [{ phase: 'released', because: 'unknown' }] },
  };

  it('is shown as unknown until its lease is released', async () => {
    const { out } = await cli(['get', 'nodes'], { views });
    expect(out).toMatch(/^n1 +ready,unknown /m);
    expect(out).toMatch(/^n2 +ready,deferred /m);
  });

  it('says so for programs', async () => {
    expect(JSON.parse((await cli(['get', 'nodes', 'n1', '-o', 'json'], { views })).out)).toMatchObject({
      unknown: true,
    });
  });
});

test('get nodes shows everything that is wrong with a node', async () => {
  const node = { state: 'ready', labels: {}, unavailable: '', since: '', version: '' };
  const fine = {
    restored: true,
    deferred: '',
    incompatible: false,
    drifted: [],
    failingProbes: [],
    notUndone: [],
    leftovers: [],
  };
  const views = {
    nodes: {
      ...Object.fromEntries(['a', 'b', 'c', 'd'].map((name) => [name, [{ ...node, node: name }]])),
      f: [{ ...node, node: 'f', capabilities: [REMOTE_APPLIER] }],
      k: [{ ...node, node: 'k', capabilities: [], unavailable: 'NotReady, cordoned' }],
    },
    status: {
      a: [{ ...fine, node: 'a' }],
      b: [{ ...fine, node: 'b', restored: false, drifted: ['/etc/motd'] }],
      c: [{ ...fine, node: 'c', incompatible: true, deferred: 'failed twice' }],
      d: [{ ...fine, node: 'd', failingProbes: [{ probe: 'app', reason: 'it says no' }] }],
      f: [{ ...fine, node: 'f', unavailable: 'no answer in 5 s', deferred: 'unavailable: no answer in 5 s' }],
      k: [{ ...fine, node: 'k' }],
    },
  };
  expect((await cli(['get', 'nodes'], { views })).out).toMatch(
    /^a +ready +0\nb +ready,degraded +1\nc +ready,incompatible,deferred +0\nd +ready,unhealthy \(app: it says no\) +0\nf/m,
  );
  expect((await cli(['get', 'nodes'], { views })).out).toMatch(
    /^f +ready,unavailable: no answer in 5 s,deferred +0\nk +ready,NotReady,cordoned +0$/m,
  );
});
