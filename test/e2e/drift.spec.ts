import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FactOf, PlanAnswer } from '#libs/contracts';
import { until } from '#libs/testing';
import { fleetFixture } from './fleet.js';
import { file, manifest, pool } from './manifests.js';
import { ROOT } from './processes.js';

const NODES = 12;
const APP = '/etc/app.conf';
const app = (content: string) => manifest('File', 'app.conf', { nodeSelector: {}, path: APP, content });

describe('a manual change on a node', () => {
  const stage = fleetFixture({ sizes: [NODES, 2, 1], systemctl: join(ROOT, 'test/chaos/host/systemctl.sh') });

  /** The content with which the unit was started. Undefined if it was not started since the file was removed. */
  const runs = (node: string): string | undefined => {
    const path = join(stage.fleet.folders.root(node), '../runs');
    return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
  };
  const editByHand = (): void => {
    for (const node of stage.fleet.nodesOf('edge')) {
      stage.fleet.folders.plant(node, { [APP]: 'edited by hand\n' });
      rmSync(join(stage.fleet.folders.root(node), '../runs'), { force: true });
    }
  };

  beforeAll(async () => {
    const { fleet } = stage;
    const restarts = manifest('DisruptionPolicy', 'app', {
      nodeSelector: {},
      files: [{ path: APP, actions: [{ kind: 'restart', unit: 'app.service' }] }],
    });
    await fleet.ended(await fleet.apply(restarts, pool('edge', NODES, { drift: 'repair' })));
    expect(await fleet.ended(await fleet.apply(app('as configured\n')))).toMatchObject({ phase: 'committed' });
    for (const node of fleet.nodesOf('edge')) expect(runs(node)).toBe('as configured\n');
    expect((await fleet.cli('get', 'fragments', 'File/app.conf')).stdout).toContain('app.conf');
  });

  test('is corrected by the next change, with the actions of its policy', async () => {
    const { fleet } = stage;
    editByHand();
    expect(await fleet.ended(await fleet.apply(file('side', 'one\n', 'edge')))).toMatchObject({ phase: 'committed' });
    for (const node of fleet.nodesOf('edge'))
      expect([fleet.folders.files(node)[APP], runs(node)]).toEqual(['as configured\n', 'as configured\none\n']);
  });

  test('is repaired if the pool says so, with the actions of its policy', async () => {
    const { fleet } = stage;
    editByHand();
    // An applier that starts looks for drift sooner.
    await fleet.processes.stop('appliers');
    fleet.startAppliers('appliers');
    const repaired = await until(
      () => fleet.nodesOf('edge').find((node) => fleet.folders.files(node)[APP] === 'as configured\n'),
      'one is repaired',
    );
    await fleet.when('leases', repaired, ({ kind, phase }) => kind === 'repair' && phase === 'released');
    expect(runs(repaired)).toBe('as configured\none\n');
    await fleet.shows('status', repaired, { verdict: 'applied', drifted: [] });
  });

  test('is not overwritten by a change if the pool only reports drift, until it is undone', async () => {
    const { fleet } = stage;
    const node = fleet.nodesOf('core')[0] as string;
    const content = (): string | undefined => fleet.folders.files(node)[APP];
    // No drift check has seen this yet.
    fleet.folders.plant(node, { [APP]: 'edited by hand\n' });
    const change = await fleet.apply(app('configured again\n'));
    expect(await fleet.ended(change)).toMatchObject({ phase: 'committed' });
    expect(content()).toBe('edited by hand\n');
    const { drifted } = await fleet.when('status', node, ({ drifted }) => drifted.length > 0);
    expect(drifted).toEqual([`${APP}: content differs`]);
    expect((await fleet.cli('get', 'drift', node)).stdout).toContain(`${APP}: content differs`);
    expect((await fleet.cli('diff', node)).stdout).toMatch(/! \S+: content differs\n(.*\n)*\+.*configured again/);
    expect((await fleet.cli('why', node)).stdout).toContain('it has drift that would be overwritten');
    fleet.folders.plant(node, { [APP]: 'as configured\n' });
    await fleet.processes.stop('appliers');
    fleet.startAppliers('appliers');
    await until(() => content() === 'configured again\n', 'the committed config follows');
  });

  test('changes as the plan says, if a change of the pool no longer keeps it', async () => {
    const { fleet } = stage;
    const [behind = '', current = ''] = fleet.nodesOf('core');
    const core = (drift: string): object => pool('core', 1, { drift });
    const content = (node: string): string | undefined => fleet.folders.files(node)[APP];
    const drifts = async (node: string): Promise<void> => {
      await fleet.when('leases', node, ({ phase }) => phase === 'released');
      fleet.folders.plant(node, { [APP]: 'edited by hand\n' });
      await fleet.processes.stop('appliers');
      fleet.startAppliers('appliers');
      await fleet.when('status', node, ({ drifted }) => drifted.length > 0);
    };
    /** The nodes that the change of a pool changes, according to the plan and to the leases. */
    const planned = async (drift: string): Promise<readonly string[]> => {
      const path = join(fleet.data, `${drift}.json`);
      writeFileSync(path, JSON.stringify(core(drift)));
      const { stdout } = await fleet.cli('plan', '-f', path, '-o', 'json');
      return (JSON.parse(stdout) as PlanAnswer).nodes.map(({ node }) => node);
    };
    const leases = async (): Promise<readonly string[]> =>
      (await fleet.events('node.lease.granted.>')).map(({ body }) => (body as FactOf<'node.lease.granted'>).node);
    const changes = async (drift: string, last: string): Promise<readonly string[]> => {
      const before = (await leases()).length;
      expect(await fleet.ended(await fleet.apply(core(drift)))).toMatchObject({ phase: 'committed' });
      await fleet.when('status', last, ({ drifted, hash, desired }) => drifted.length === 0 && hash === desired);
      return [...new Set((await leases()).slice(before))].sort();
    };

    await drifts(behind);
    const side = await fleet.apply(file('side', 'two\n', 'core'));
    expect(await fleet.ended(side)).toMatchObject({ phase: 'committed' });
    await drifts(current);
    await until(async () => (await planned('repair')).includes(current), 'the merger knows of the drift');
    expect([await planned('report'), await planned('overwrite'), await planned('repair')]).toEqual([
      [],
      [behind],
      [behind, current],
    ]);
    expect(await changes('overwrite', behind)).toEqual([behind]);
    expect([content(behind), content(current)]).toEqual(['configured again\n', 'edited by hand\n']);
    expect(await planned('repair')).toEqual([current]);
    expect(await changes('repair', current)).toEqual([current]);
    expect(content(current)).toBe('configured again\n');
  });
});
