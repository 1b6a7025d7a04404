import type { Chance } from '../simulation/world/chance.js';
import { ROLES, type Shape } from './shape.js';

export type Scope = 'all' | (typeof ROLES)[number];

/** A change as people publish it: two files of the same version. A node has both of them or neither. */
export interface Publication {
  readonly do: 'publish';
  readonly via: 'cli' | 'nats';
  readonly scope: Scope;
  readonly version: number;
  /** The files are deleted instead. */
  readonly gone: boolean;
  /** Nodes whose probe fails with this version. */
  readonly failingNodes: readonly string[];
  readonly maxFailures: number;
}

/** What people do to the newest open change. */
export interface Steering {
  readonly do: 'pause' | 'resume' | 'abort';
}
export type Act = Publication | Steering;

const SCOPES: readonly Scope[] = ['all', 'all', ...ROLES];

export function planPublication(
  chance: Chance,
  shape: Shape,
  version: number,
  scope: Scope = chance.pick(SCOPES),
): Publication {
  const kind = chance.next();
  const failingNodes =
    kind < 0.55 ? [] : kind < 0.8 ? someOf(chance, shape.nodes) : inRole(shape.nodes, chance.pick(ROLES));
  return {
    do: 'publish',
    via: chance.pick(['cli', 'nats'] as const),
    scope,
    version,
    gone: chance.flip(0.1),
    failingNodes,
    maxFailures: chance.flip(0.5) ? chance.integer(1, 4) : 0,
  };
}

export const planSteering = (chance: Chance): Steering => ({
  do: chance.pick(['pause', 'pause', 'resume', 'resume', 'abort'] as const),
});

function someOf(chance: Chance, nodes: readonly string[]): readonly string[] {
  return [...new Set([1, 2, 3].map(() => chance.pick(nodes)))];
}
const inRole = (nodes: readonly string[], role: string): readonly string[] =>
  nodes.filter((node) => node.startsWith(`${role}-`));
