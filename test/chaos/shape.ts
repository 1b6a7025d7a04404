import { SERVICES } from '#libs/contracts';

/** The fleet and the times for which a schedule is drawn. */
export interface Shape {
  readonly nodes: readonly string[];
  /** Processes by name: both copies of each service, and the groups of appliers. */
  readonly services: readonly string[];
  readonly groups: readonly string[];
  /** How long faults act in a round. */
  readonly roundMs: number;
  readonly faults: number;
  readonly publications: number;
  readonly steerings: number;
  /** Longer than a lease of a node. */
  readonly freezeMs: number;
}

/** The pool whose changes need a drain and a restart, and the process that drains it. */
export const DRAINED = 'core';
export const DRAINER = 'drainer';
export const ROLES = ['edge', 'core', 'rest'] as const;
/** The longest time of a lease. Frozen appliers are away for longer. */
export const LEASE_SECONDS = 10;

const copies = SERVICES.flatMap((name) => [name, `${name}-2`]);
const groupsOf = (count: number): readonly string[] => Array.from({ length: count }, (_, i) => `appliers-${i + 1}`);
/** The names that the fleet gives to its nodes. */
const nodesOf = (sizes: readonly number[]): readonly string[] =>
  ROLES.flatMap((role, i) =>
    Array.from(
      { length: sizes[i] as number },
      (_, at) => `${role}-${String(at + 1).padStart(2, '0')}.dc${(at % 2) + 1}`,
    ),
  );

/** 40 nodes, five per process. */
export const LONG: Shape = {
  nodes: nodesOf([10, 6, 24]),
  services: copies,
  groups: groupsOf(8),
  roundMs: 40_000,
  faults: 10,
  publications: 5,
  steerings: 3,
  freezeMs: (LEASE_SECONDS + 3) * 1_000,
};
/** For a spec, which has a minute. */
export const SHORT: Shape = { ...LONG, groups: groupsOf(4), roundMs: 14_000, faults: 5, publications: 3, steerings: 1 };
