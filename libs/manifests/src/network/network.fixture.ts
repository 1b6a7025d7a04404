import type { Config, ConfigEntry } from '#libs/contracts';

/** Entries of network kinds, for specs. */
export const entry = (kind: string, name: string, spec: object): ConfigEntry => ({
  kind,
  name,
  spec: spec as ConfigEntry['spec'],
});
export const vrf = (name: string, spec: object = {}): ConfigEntry => entry('Vrf', name, { vrf: name, ...spec });
export const l2 = (name: string, id: number, spec: object = {}): ConfigEntry =>
  entry('Layer2Network', name, { id, ...spec });
export const table = (name: string, tableId: number, spec: object = {}): ConfigEntry =>
  entry('RoutingTable', name, { tableId, ...spec });
export const peering = (name: string, network: string, spec: object = {}): ConfigEntry =>
  entry('BgpPeering', name, { network, remoteAs: 64_513, ...spec });
export const config = (...fragments: ConfigEntry[]): Config => ({ fragments });
export const permit = (cidr: string, more: object = {}): object => ({ cidr, action: 'permit', ...more });
export const gateways = (...anycastGateways: string[]): object => ({
  anycastMac: '02:00:00:00:00:01',
  anycastGateways,
});
