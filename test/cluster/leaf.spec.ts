import { connectFleet } from '#libs/client';
import { until } from '#libs/testing';
import { gatherEvidence } from '../chaos/evidence.js';
import { journalOf } from '../chaos/journals.js';
import { judge } from '../chaos/oracles/index.js';
import { workInProgress } from '../chaos/quiet.js';
import { startFleetOn, type Fleet } from '../e2e/fleet.js';
import { file, health } from '../e2e/manifests.js';
import type { Files } from '../e2e/node-folders.js';
import { LeafSite } from './leaf-site.js';

describe('nodes that are connected to a leaf node, with services at its hub', () => {
  let fleet: Fleet<LeafSite>;
  const acknowledged = new Map<string, { readonly apply: readonly never[] }>();
  beforeAll(async () => {
    fleet = await startFleetOn((folder) => LeafSite.start(folder), { sizes: [4, 2, 6], applyTimeout: '5m' });
  });
  afterAll(() => fleet.close());

  const publish = async (version: string): Promise<string> => {
    const apply = [health(fleet.gate.url), file('app', `${version}\n`)];
    const change = await fleet.apply(...apply);
    acknowledged.set(change, { apply: apply as never[] });
    return change;
  };
  const has =
    (version: string) =>
    (files: Files): boolean =>
      files['/etc/app.conf'] === `${version}\n`;
  const committed = async (change: string, version: string): Promise<void> => {
    await until(
      async () => (await fleet.client.get('changes', change).catch(() => undefined))?.phase === 'committed',
      `${change} is committed`,
    );
    expect(fleet.files()).toEqual(fleet.filesWith(() => ({ '/etc/app.conf': `${version}\n` })));
  };

  test('get a rollout like any other node, through pushes and reads', async () => {
    await committed(await publish('one'), 'one');
  });

  test('let tools at the leaf node use the streams of the hub', async () => {
    const tools = await connectFleet({ servers: fleet.server.nodesUrl });
    expect(await tools.inspect()).toMatchObject({ server: { lacksJetStream: undefined }, topology: [] });
    await tools.close();
  });

  test('finish a change on their own if the link is cut during it, and continue when it is restored', async () => {
    fleet.gate.hold((_node, files) => has('two')(files));
    const change = await publish('two');
    await until(() => fleet.gate.held.size === 4, 'every unit is in use');
    const held = [...fleet.gate.held];
    await fleet.server.cut();
    fleet.gate.release();
    await until(
      () => held.every((node) => journalOf(fleet, node)?.work === undefined),
      'they have ended what they had begun',
    );
    expect(held.filter((node) => !has('two')(fleet.folders.files(node)))).toEqual([]);
    expect((await fleet.client.get('rollouts', change))?.applied).toBe(0);
    await fleet.server.restore();
    await committed(change, 'two');
    await until(async () => (await workInProgress(fleet).catch(String)) === '', 'nothing is in progress');
    expect(judge(await gatherEvidence(fleet, acknowledged, []))).toEqual([]);
  });
});
