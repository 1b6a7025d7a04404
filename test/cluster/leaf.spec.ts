import { until } from '#libs/testing';
import { gatherEvidence } from '../chaos/evidence.js';
import { journalOf } from '../chaos/journals.js';
import { judge } from '../chaos/oracles/index.js';
import { restless } from '../chaos/quiet.js';
import { startFleetOn, type Fleet } from '../e2e/fleet.js';
import { file, health } from '../e2e/manifests.js';
import type { Files } from '../e2e/node-folders.js';
import { LeafSite } from './leaf-site.js';

/** Links, and consumers that are recreated, take seconds each. */
const QUIET_MS = 90_000;

describe('nodes that are connected to a leaf node, services to its hub', () => {
  let fleet: Fleet<LeafSite>;
  const acknowledged = new Map<string, { readonly apply: readonly never[] }>();
  beforeAll(async () => {
    fleet = await startFleetOn((folder) => LeafSite.start(folder), { sizes: [4, 2, 6], applyTimeout: '5m' });
  }, 120_000);
  afterAll(() => fleet.close(), 60_000);

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
      QUIET_MS,
    );
    expect(fleet.files()).toEqual(fleet.filesWith(() => ({ '/etc/app.conf': `${version}\n` })));
  };

  test('a rollout reaches them as any other node, with what is pushed to them and what they read', async () => {
    await committed(await publish('one'), 'one');
  }, 120_000);

  test('whose link is cut in the middle of a change end it by themselves, and all goes on when it is back', async () => {
    fleet.gate.hold((_node, files) => has('two')(files));
    const change = await publish('two');
    await until(() => fleet.gate.held.size === 4, 'every unit is in use', QUIET_MS);
    const held = [...fleet.gate.held];
    await fleet.server.cut();
    fleet.gate.release();
    await until(
      () => held.every((node) => journalOf(fleet, node)?.work === undefined),
      'they have ended what they had begun',
      QUIET_MS,
    );
    expect(held.filter((node) => !has('two')(fleet.folders.files(node)))).toEqual([]);
    expect((await fleet.client.get('rollouts', change))?.applied).toBe(0);
    await fleet.server.mend();
    await committed(change, 'two');
    await until(async () => (await restless(fleet).catch(String)) === '', 'nothing goes on', QUIET_MS);
    expect(judge(await gatherEvidence(fleet, acknowledged, []))).toEqual([]);
  }, 300_000);
});
