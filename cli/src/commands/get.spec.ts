import type { ListedObject } from '#libs/client';
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
