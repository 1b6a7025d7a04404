import type { PlanAnswer } from '#libs/contracts';
import { cli, type FakeFleet } from '../fakes.fixture.js';

const POOL = JSON.stringify({
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'Pool',
  metadata: { name: 'edge' },
  spec: { nodeSelector: {}, drift: 'repair' },
});
const DIRECTORY = '/etc/motd: is a directory';
const NOT_EMPTY = 'a directory that is not empty is in the way';
const STAYS = `${DIRECTORY}, and cannot be corrected: ${NOT_EMPTY}`;
const file = (path: string) => ({ kind: 'File', name: path.slice(5), spec: { path, content: 'x' } });
const CONFIG = { fragments: [file('/etc/motd'), file('/etc/app'), { kind: 'Sysctl', name: 'a', spec: {} }] };

describe('the plan of a change that corrects drift', () => {
  const node = { node: 'a', pool: 'edge', from: 'h', to: 'h', actions: [], changed: [] };
  const plan = async (planned: object, more: FakeFleet = {}): Promise<object> => {
    const askedNodes: string[] = [];
    const nodes = [{ ...node, ...planned }];
    const fleet: FakeFleet = {
      answers: { 'ops.config.plan': () => ({ rejected: [], nodes }) },
      configs: { h: CONFIG },
      paths: { a: [{ path: '/etc/motd', state: 'directory', what: 'a directory', refused: NOT_EMPTY }] },
      askedNodes,
      ...more,
    };
    const { out } = await cli(['plan', '-f', '-', '-o', 'json'], fleet, {}, POOL);
    return { ...(JSON.parse(out) as PlanAnswer).nodes[0], askedNodes };
  };
  const overwrites = { drift: [DIRECTORY], overwritesDrift: true, afterCommit: true };

  test('does not promise what the node refuses now', async () => {
    expect(await plan(overwrites)).toEqual({ ...node, leavesDrift: [STAYS], deferred: 'refused', askedNodes: ['a'] });
  });

  test('still promises the rest', async () => {
    const drift = [DIRECTORY, '/etc/app: content differs', '… and 2 more'];
    expect(await plan({ ...overwrites, drift, leavesDrift: ['/b: x'] })).toEqual({
      ...node,
      ...overwrites,
      drift: drift.slice(1),
      leavesDrift: ['/b: x', STAYS],
      askedNodes: ['a'],
    });
    expect(await plan({ ...overwrites, to: 'i', changed: ['/etc/app'], afterCommit: undefined })).toEqual({
      ...node,
      to: 'i',
      changed: ['/etc/app'],
      leavesDrift: [STAYS],
      askedNodes: ['a'],
    });
  });

  test.each<[string, object, FakeFleet, readonly string[]]>([
    ['nothing is refused', {}, { paths: {} }, ['a']],
    ['the node does not answer', {}, { paths: { a: 'silent' } }, ['a']],
    ['the node works on a lease', {}, { paths: { a: 'busy' } }, ['a']],
    ['its config is gone', {}, { configs: {} }, []],
    ['only what has no path has drifted', { drift: ['vm.swappiness: is 60 instead of 10'] }, {}, []],
    ['the change gives the path other content', { to: 'i', changed: ['/etc/motd'] }, {}, []],
  ])('stays as reported if %s', async (_what, more, fleet, askedNodes) => {
    expect(await plan({ ...overwrites, ...more }, fleet)).toEqual({ ...node, ...overwrites, ...more, askedNodes });
  });
});
