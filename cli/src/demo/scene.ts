import type { InventoryNode } from '../up/inventory.js';

/** Four edge nodes and eight workers, over three zones. */
export const DEMO_NODES: readonly InventoryNode[] = [...nodes('edge', 4), ...nodes('worker', 8)];
export const DEMO_PATH = '/etc/motd';
/** The nodes whose file is shown. */
export const SHOWN = ['edge-01', 'worker-01'] as const;

/** How many nodes may be unavailable at once. A policy changes no node. */
export const poolsChange = (): object => ({
  message: 'Pools and their budgets',
  author: 'demo',
  apply: [pool('edge', 1), pool('worker', 2)],
});

/** A file for every node, and a probe that checks it. */
export const goodChange = (): object => ({
  message: 'Greet in every zone',
  author: 'demo',
  apply: [
    manifest('Probe', 'greets', {
      nodeSelector: {},
      file: { path: DEMO_PATH, matches: '^hello' },
      timeout: '1s',
      retries: 0,
    }),
    motd('hello from {{ node.name }} in zone {{ node.labels.zone }}\n'),
  ],
});

/** The same file without its greeting: the probe fails. */
export const badChange = (): object => ({
  message: 'Shorten the greeting',
  author: 'demo',
  apply: [motd('{{ node.name }}\n')],
});

export const isGoodFile = (node: string, text: string): boolean =>
  new RegExp(`^hello from ${node} in zone [abc]\\n$`).test(text);

function nodes(role: string, count: number): InventoryNode[] {
  return Array.from({ length: count }, (_, index) => ({
    name: `${role}-0${index + 1}`,
    labels: { role, zone: ['a', 'b', 'c'][index % 3] as string },
  }));
}

const pool = (role: string, maxUnavailable: number): object =>
  manifest('Pool', role, { nodeSelector: { matchLabels: { role } }, maxUnavailable, applyTimeout: '20s' });
const motd = (content: string): object =>
  manifest('File', 'motd', { nodeSelector: {}, path: DEMO_PATH, content, mode: '0644' });
const manifest = (kind: string, name: string, spec: object): object => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind,
  metadata: { name },
  spec,
});
