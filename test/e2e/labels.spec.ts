import { until } from '#libs/testing';
import { fleetFixture } from './fleet.js';
import { manifest } from './manifests.js';

const EDGE = 'edge-01.dc1';
const PATH = '/etc/site.conf';

describe('a label that a person sets on a node', () => {
  const stage = fleetFixture({ sizes: [1, 1, 1], own: [EDGE] });

  test('selects the node, survives a restart of its applier, and can be removed again', async () => {
    const { fleet } = stage;
    const content = (): string | undefined => fleet.folders.files(EDGE)[PATH];
    const site = { nodeSelector: { matchLabels: { site: 'x' } }, path: PATH, content: '{{ node.labels.role }}\n' };
    await fleet.ended(await fleet.apply(manifest('File', 'site', site)));
    expect(content()).toBeUndefined();
    // `role` is a label of the node itself.
    expect(await fleet.cli('label', EDGE, 'site=x', 'role=mine')).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('role=mine,site=x') as string,
    });
    await until(() => content() === 'mine\n', 'the node gets what is selected by its label');
    await fleet.processes.stop(EDGE);
    const before = await fleet.client.get('status', EDGE);
    fleet.startApplier(EDGE, 'edge');
    await fleet.when('status', EDGE, ({ seq }) => seq > (before?.seq ?? 0));
    await fleet.shows('nodes', EDGE, { labels: { site: 'x', role: 'mine' } });
    expect(await fleet.cli('label', EDGE, 'site-', 'role-')).toMatchObject({ code: 0 });
    await until(() => content() === undefined, 'the file is deleted from the node');
    await fleet.shows('nodes', EDGE, { labels: { role: 'edge' } });
    expect(await fleet.cli('label', EDGE, 'role-')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('no label role was set on edge-01.dc1') as string,
    });
  });
});
