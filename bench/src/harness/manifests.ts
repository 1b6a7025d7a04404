import { API_VERSION } from '#libs/manifests';

const manifest = (kind: string, name: string, spec: object): object => ({
  apiVersion: API_VERSION,
  kind,
  metadata: { name },
  spec: { nodeSelector: {}, ...spec },
});

/** A file on every node, or on those that match the selector. */
export const file = (name: string, content: string, nodeSelector: object = {}): object =>
  manifest('File', name, { nodeSelector, path: `/etc/bench/${name}`, content, mode: '0644' });

/** One pool of all nodes. */
export const pool = (maxUnavailable: number | string, name = 'all', nodeSelector: object = {}): object =>
  manifest('Pool', name, { nodeSelector, maxUnavailable });

export const fileProbe = (name: string, path: string, matches: string): object =>
  manifest('Probe', name, { file: { path, matches } });

/** Content with the size of a typical network config: half a kilobyte. */
export const contentOf = (version: number): string =>
  `# version ${version}\n${Array.from({ length: 10 }, (_, i) => `route 10.${version % 250}.${i}.0/24 via 192.0.2.${i} metric 100`).join('\n')}\n`;
