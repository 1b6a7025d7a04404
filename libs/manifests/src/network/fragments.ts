import { fragmentId, type Config, type ConfigEntry } from '#libs/contracts';
import type { BgpPeeringSpec } from '../kinds/bgp-peering.js';
import type { Layer2NetworkSpec } from '../kinds/layer2-network.js';
import type { RoutingTableSpec } from '../kinds/routing-table.js';
import type { VrfSpec } from '../kinds/vrf.js';

/** A fragment of a config, with the spec of its kind. */
export interface NetworkFragment<S> {
  readonly id: string;
  readonly name: string;
  readonly spec: Omit<S, 'nodeSelector'>;
}

/** The fragments of a config that define its network, by kind, in a fixed order. */
export interface NetworkFragments {
  readonly vrfs: readonly NetworkFragment<VrfSpec>[];
  readonly layer2: readonly NetworkFragment<Layer2NetworkSpec>[];
  readonly tables: readonly NetworkFragment<RoutingTableSpec>[];
  readonly peerings: readonly NetworkFragment<BgpPeeringSpec>[];
}

/**
 * The kinds that make up a node's network. They take effect live and under probes, and policies have rules for them.
 */
export const NETWORK_KINDS = ['Vrf', 'Layer2Network', 'RoutingTable', 'BgpPeering'] as const;
export type NetworkKind = (typeof NETWORK_KINDS)[number];

export const isNetworkEntry = (entry: ConfigEntry): boolean => NETWORK_KINDS.some((kind) => kind === entry.kind);

/** Reads the checked entries of a config; `holds` leaves out invalid ones. */
export function networkFragments(
  config: Config,
  holds: (entry: ConfigEntry) => boolean = () => true,
): NetworkFragments {
  const read = <S>(kind: string): readonly NetworkFragment<S>[] =>
    config.fragments
      .filter((entry) => entry.kind === kind && holds(entry))
      .map((entry) => ({
        id: fragmentId(entry),
        name: entry.name,
        spec: entry.spec as unknown as Omit<S, 'nodeSelector'>,
      }))
      .sort((a, b) => compareText(a.name, b.name));
  return {
    vrfs: read('Vrf'),
    layer2: read<Layer2NetworkSpec>('Layer2Network').toSorted((a, b) => a.spec.id - b.spec.id),
    tables: read<RoutingTableSpec>('RoutingTable').toSorted((a, b) => a.spec.tableId - b.spec.tableId),
    peerings: read('BgpPeering'),
  };
}

/** Only those of the fields that exist. */
export const given = <T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;

export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
