import { readManifests } from '#libs/manifests';
import { cli } from '../fakes.fixture.js';

const STORAGE =
  'kind: Layer2NetworkConfiguration\nmetadata: {name: storage}\nspec: {id: 100, acceptRA: true}\n---\nkind: RoutingTable\nmetadata: {name: egress}\nspec: {tableId: 300}\n';

test('prints manifests that can be applied, and lists on stderr what is unsupported', async () => {
  const { exit, out, err } = await cli(['import', '-f', '-'], undefined, {}, STORAGE);
  expect([exit, err]).toEqual([0, 'Layer2NetworkConfiguration/storage: skipped acceptRA: unsupported field\n']);
  expect(readManifests(out).manifests).toMatchObject([
    {
      apiVersion: 'sluice.dev/v1alpha1',
      kind: 'Layer2Network',
      metadata: { name: 'storage' },
      spec: { nodeSelector: {}, id: 100 },
    },
    { kind: 'RoutingTable', spec: { tableId: 300 } },
  ]);
  expect(JSON.parse((await cli(['import', '-f', '-', '-o', 'json'], undefined, {}, STORAGE)).out)).toHaveLength(2);
});

test('reads YAML like Kubernetes: a mode that begins with 0 is octal', async () => {
  const text =
    'kind: MachineConfig\nmetadata: {name: m}\nspec: {config: {storage: {files: [{path: /a, mode: 0644}]}, systemd: {units: [{name: a.service, enabled: yes}]}}}\n';
  const { exit, out } = await cli(['import', '-f', '-'], undefined, {}, text);
  expect(exit).toBe(0);
  expect(readManifests(out).manifests).toMatchObject([
    { kind: 'File', spec: { mode: '0644' } },
    { kind: 'SystemdUnit', spec: { enabled: true } },
    { kind: 'DisruptionPolicy' },
  ]);
});

test('fails if there is nothing to import', async () => {
  expect(await cli(['import', '-f', '-'], undefined, {}, '')).toMatchObject({
    exit: 2,
    err: 'error: -f -: contains no manifest\n',
  });
  expect(await cli(['import', '-f', '-'], undefined, {}, 'kind: Secret\n')).toMatchObject({
    exit: 3,
    out: '',
    err: expect.stringContaining('skipped Secret: unsupported kind') as string,
  });
  expect(await cli(['import', '-f', '-'], undefined, {}, 'a: [')).toMatchObject({ exit: 3, out: '' });
  expect((await cli(['import'])).exit).toBe(2);
});
