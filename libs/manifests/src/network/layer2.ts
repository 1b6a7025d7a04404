import type { Layer2NetworkSpec } from '../kinds/layer2-network.js';
import type { Link, LinkAddress } from './elements.js';
import { given } from './fragments.js';

type Layer2 = Omit<Layer2NetworkSpec, 'nodeSelector'>;

/** The bridge of a layer-2 network; its gateways are addresses on it. */
export const bridgeName = (id: number): string => `l2.${id}`;

/** The links of a layer-2 network. */
export function layer2Links(spec: Layer2): readonly Link[] {
  const { id, vni, vtep, trunk, mtu } = spec;
  const bridge = bridgeName(id);
  const size = given({ mtu });
  const segments = spec.disableSegmentation === true ? { gsoMaxSegs: 1 } : {};
  const port = { master: bridge, ...size };
  const links: Link[] = [{ ...bridgeLink(spec, bridge), ...size, ...segments }];
  if (vni !== undefined) {
    links.push({
      name: `vx.${id}`,
      type: 'vxlan',
      vni,
      ...port,
      learning: false,
      neighSuppress: spec.neighSuppression ?? false,
      ...segments,
      ...given({ local: vtep }),
    });
  }
  if (trunk !== undefined)
    links.push({ name: `vl.${id}`, type: 'vlan', vlan: id, parent: trunk, ...port, ...segments });
  if (spec.createMacvlanInterface === true) {
    links.push({ name: `l2v.${id}`, type: 'veth', peer: `vlan.${id}`, ...port, ...segments });
    links.push({ name: `vlan.${id}`, type: 'veth', peer: `l2v.${id}`, ...size, ...segments });
  }
  return links;
}

export const layer2Addresses = ({ id, anycastGateways = [] }: Layer2): readonly LinkAddress[] =>
  anycastGateways.map((address) => ({ link: bridgeName(id), address }));

/** To announce a neighbour to others, the kernel must learn about it without having asked. */
const LEARN_NEIGHBORS = { 'ipv4/arp_accept': '1', 'ipv6/accept_untracked_na': '1' };

const bridgeLink = ({ anycastMac, vrf, advertiseNeighbors }: Layer2, name: string): Link => ({
  name,
  type: 'bridge',
  ...given({
    master: vrf,
    mac: anycastMac?.toLowerCase(),
    settings: advertiseNeighbors === true ? LEARN_NEIGHBORS : undefined,
  }),
});
