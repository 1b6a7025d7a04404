import { About, Fields } from '../shape/description.js';
import { ADDRESS, HOST_IN_NETWORK, MAC } from '../address.js';
import { OnlyWith, Optional, Requires, Ruled, type Problem } from '../shape/checked.js';
import { Flag, Text, TextList, Whole } from '../shape/forms.js';
import { INTERFACE, VRF_NAME } from './interface-name.js';
import { NodeSpec, type Kind } from './kind.js';
import { MAX_VNI, NO_TUNNEL } from './vrf.js';

const MAX_VLAN = 4094;
const MIN_MTU = 1_000;
const MAX_MTU = 9_000;
const MIN_MTU_OF_IPV6 = 1_280;

/** A layer-2 network on the node: a bridge for a VLAN id, with a tunnel or a tagged port. */
@Ruled({ problems: gatewayProblems, schema: {} })
@OnlyWith('vni', 'neighSuppression', NO_TUNNEL)
@OnlyWith('vni', 'vtep', NO_TUNNEL)
@Requires(
  'anycastGateways',
  'anycastMac',
  'anycastGateways need anycastMac, the MAC address that they have on every node',
)
@About('A layer 2 network on the node: a bridge, optionally with a VXLAN tunnel, a tagged port and gateway addresses.')
@Fields({
  id: 'VLAN id. It names the bridge, and is the tag on `trunk`.',
  mtu: 'MTU in bytes of its interfaces. At least 1,280 with IPv6 gateways. Default: chosen by the kernel.',
  vni: 'VXLAN network id. With it, a tunnel connects the bridges of all nodes.',
  vtep: 'Local address of the tunnel. Default: chosen by the kernel. Needs `vni`.',
  trunk: 'Existing interface of the node on which the network is tagged with `id`.',
  anycastMac: 'MAC address of the gateways, the same on every node. Required with `anycastGateways`.',
  anycastGateways: 'Addresses of the gateways with their prefix length, such as `10.1.0.1/24`. The same on every node.',
  advertiseNeighbors: 'Whether the node announces hosts that it learns about on this network. Default: false.',
  createMacvlanInterface:
    'Whether to create the interface `vlan.ID`, connected to the bridge, for use as a parent of macvlan interfaces. Default: false.',
  neighSuppression: 'Whether the tunnel answers ARP and neighbor requests for known hosts. Needs `vni`.',
  disableSegmentation: 'Whether segmentation offload is switched off on its interfaces. Default: false.',
  vrf: "VRF in which the gateways route. Default: the node's main table.",
})
export class Layer2NetworkSpec extends NodeSpec {
  @Whole(1, MAX_VLAN) readonly id!: number;
  @Optional() @Whole(MIN_MTU, MAX_MTU) readonly mtu?: number;
  @Optional() @Whole(1, MAX_VNI) readonly vni?: number;
  /** The local address of the tunnel. Default: chosen by the kernel. */
  @Optional() @Text(ADDRESS) readonly vtep?: string;
  /** An interface of the node that carries the network, tagged with its id. */
  @Optional() @Text(INTERFACE) readonly trunk?: string;
  @Optional() @Text(MAC) readonly anycastMac?: string;
  @Optional() @TextList(HOST_IN_NETWORK) readonly anycastGateways?: readonly string[];
  @Optional() @Flag() readonly advertiseNeighbors?: boolean;
  @Optional() @Flag() readonly createMacvlanInterface?: boolean;
  @Optional() @Flag() readonly neighSuppression?: boolean;
  @Optional() @Flag() readonly disableSegmentation?: boolean;
  /** The VRF in which its gateways route. Default: the node's main table. */
  @Optional() @Text(VRF_NAME) readonly vrf?: string;
}

export const layer2Network: Kind = { name: 'Layer2Network', spec: Layer2NetworkSpec, role: 'state' };

function gatewayProblems({ mtu, anycastGateways }: Readonly<Record<string, unknown>>): readonly Problem[] {
  const problems: Problem[] = [];
  const gateways: readonly unknown[] = Array.isArray(anycastGateways) ? anycastGateways : [];
  if (typeof mtu === 'number' && mtu < MIN_MTU_OF_IPV6 && gateways.some((gateway) => String(gateway).includes(':')))
    problems.push({
      at: 'mtu',
      code: 'out-of-range',
      message: `must be at least ${MIN_MTU_OF_IPV6} for a gateway of IPv6: below that the kernel disables IPv6 on the interface`,
    });
  for (const [i, gateway] of gateways.entries()) {
    if (gateways.indexOf(gateway) < i)
      problems.push({
        at: `anycastGateways[${i}]`,
        code: 'duplicate',
        message: `is the same as anycastGateways[${gateways.indexOf(gateway)}]`,
      });
  }
  return problems;
}
