import type { PoolView } from './views.js';

/** The nodes that stall a rollout, with the reason of each that is known, and how to continue. */
export interface Holders {
  readonly text: string;
  readonly wayOut: string;
}

const SHOWN = 5;

/** What a stalled rollout waits for, why, and how to continue. */
export function stalledText(nodes: readonly string[], pools: Iterable<PoolView>): string {
  const { text, wayOut: way } = holdersOf(nodes, pools);
  return `stalled: waits for ${text}; ${way}`;
}

export function holdersOf(nodes: readonly string[], pools: Iterable<PoolView>): Holders {
  const because = new Map([...pools].flatMap(({ unavailable }) => unavailable.map((one) => [one.node, one.because])));
  const named = nodes.slice(0, SHOWN).map((node) => (because.has(node) ? `${node} (${because.get(node)})` : node));
  const more = nodes.length > SHOWN ? ` and ${nodes.length - SHOWN} more` : '';
  return { text: `${named.join(', ')}${more}`, wayOut: wayOut(nodes.map((node) => because.get(node) ?? '')) };
}

/** How nodes that hold units release them, by why they hold them. */
export function wayOut(because: readonly string[]): string {
  const taken = because.filter(isTaken).length;
  const ways = [
    ...(taken > 0 ? ['give taken nodes back with sluice give NODE --owner OWNER'] : []),
    ...(taken < because.length
      ? [
          'bring the nodes back, or continue without one: sluice skip NODE, or sluice remove NODE if it is gone for good',
        ]
      : []),
  ];
  return ways.join('; ');
}

const isTaken = (because: string): boolean => because.startsWith('taken by ');
