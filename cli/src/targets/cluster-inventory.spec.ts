import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readClusters } from './cluster-inventory.js';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-inventory-'));
  file = join(folder, 'clusters.yaml');
  writeFileSync(join(folder, 'a.kubeconfig'), 'kind: Config\n');
  writeFileSync(join(folder, 'b.kubeconfig'), 'kind: Config\n');
  writeFileSync(join(folder, 'empty'), '\n');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function read(...clusters: readonly object[]): ReturnType<typeof readClusters>['entries'] {
  writeFileSync(file, JSON.stringify({ clusters }));
  return readClusters(file).entries;
}

it('reads clusters with their kubeconfigs, and says which files it has read', () => {
  const used: string[] = [];
  read(
    { name: 'a', kubeconfigFile: 'a.kubeconfig', labels: { stage: 'prod' } },
    { name: 'b', kubeconfigFile: 'b.kubeconfig' },
  );
  expect(readClusters(file, (path) => void used.push(path)).entries).toEqual([
    { name: 'a', labels: { stage: 'prod' }, kubeconfig: 'kind: Config\n' },
    { name: 'b', labels: {}, kubeconfig: 'kind: Config\n' },
  ]);
  expect(used).toEqual([join(folder, 'a.kubeconfig'), join(folder, 'b.kubeconfig')]);
});

it.each([
  [[{ name: 'a' }], 'clusters[0].kubeconfigFile: is required'],
  [[{ name: 'A B', kubeconfigFile: 'a.kubeconfig' }], 'clusters[0].name: '],
  [[{ name: 'a', kubeconfigFile: 'none' }], 'clusters[0].kubeconfigFile: '],
  [[{ name: 'a', kubeconfigFile: 'empty' }], 'empty is empty'],
  [
    [
      { name: 'a', kubeconfigFile: 'a.kubeconfig' },
      { name: 'a', kubeconfigFile: 'b.kubeconfig' },
    ],
    'clusters[1].name: is the same as in clusters[0]: "a"',
  ],
  [
    [
      { name: 'a', kubeconfigFile: 'a.kubeconfig' },
      { name: 'b', kubeconfigFile: 'a.kubeconfig' },
    ],
    'clusters[1].kubeconfigFile: is the same as in clusters[0]: "a.kubeconfig"',
  ],
])('names the place of %j, which it cannot use', (clusters, message) => {
  expect(() => read(...clusters)).toThrow(message);
});
