import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '#libs/testing';
import { fleetFixture } from './fleet.js';
import { file, manifest, pool } from './manifests.js';
import { ROOT } from './processes.js';

const NODES = 12;
const APP = '/etc/app.conf';

describe('what was changed by hand on a node', () => {
  const stage = fleetFixture({ sizes: [NODES, 1, 1], systemctl: join(ROOT, 'test/chaos/host/systemctl.sh') });

  /** What the unit was started with; undefined when it was not since it was forgotten. */
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
    expect(await fleet.ended(await fleet.apply(file('app', 'as configured\n')))).toMatchObject({ phase: 'committed' });
    for (const node of fleet.nodesOf('edge')) expect(runs(node)).toBe('as configured\n');
  });

  test('is put right by the next change, with the actions that its policy asks for', async () => {
    const { fleet } = stage;
    editByHand();
    expect(await fleet.ended(await fleet.apply(file('side', 'one\n', 'edge')))).toMatchObject({ phase: 'committed' });
    for (const node of fleet.nodesOf('edge'))
      expect([fleet.folders.files(node)[APP], runs(node)]).toEqual(['as configured\n', 'as configured\none\n']);
  });

  test('is repaired where the pool says so, with the actions that its policy asks for', async () => {
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
    expect(await fleet.client.get('status', repaired)).toMatchObject({ verdict: 'applied', drifted: [] });
  });
});
