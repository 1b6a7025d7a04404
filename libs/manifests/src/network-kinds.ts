/** The kinds that make up a node's network: they act live and under probes, and rules of a policy name them. */
export const NETWORK_KINDS = ['Vrf', 'Layer2Network', 'RoutingTable', 'BgpPeering'] as const;
export type NetworkKind = (typeof NETWORK_KINDS)[number];
