import { About, Fields } from '../shape/description.js';
import { ADDRESS, NETWORK, ONE_ADDRESS } from '../address.js';
import { NestedList, OnlyWith, Optional, Requires, Ruled } from '../shape/checked.js';
import { Text, TextList, Whole, type TextForm } from '../shape/forms.js';
import { NEW_INTERFACE, VRF_NAME } from './interface-name.js';
import { NodeSpec, type Kind } from './kind.js';
import { filterLists, RouteFilter } from './route-filter.js';

export const MAX_VNI = 16_777_215;
export const MAX_AS = 4_294_967_295;
export const NO_TUNNEL = 'without vni there is no tunnel';
const TOGETHER = 'vni and routeTarget must be used together';
const ONE = 'community and communities cannot be used together';

/** The form of a route target: two numbers, or an address and a number. */
const ROUTE_TARGET: TextForm = {
  code: 'bad-route-target',
  problem: (text) =>
    isRouteTarget(text) ? undefined : 'must be a route target such as "64512:100", "4200000000:100" or "192.0.2.1:100"',
  schema: { pattern: '^[0-9.]+:[0-9]+$' },
};
const COMMUNITY: TextForm = {
  code: 'bad-community',
  problem: (text) =>
    WELL_KNOWN.includes(text) || isPair(text, 65_535, 65_535)
      ? undefined
      : `must be a community such as "64512:100", or one of ${WELL_KNOWN.join(', ')}`,
  schema: { pattern: '^([0-9]{1,5}:[0-9]{1,5}|[A-Za-z-]+)$' },
};
const WELL_KNOWN = ['no-export', 'no-advertise', 'no-peer', 'local-AS', 'blackhole', 'graceful-shutdown'];

/** An interface with an address of the node in the VRF. */
@Fields({
  name: 'Name of the interface, at most 15 characters.',
  subnet:
    "The node's own address with /32 or /128. A template such as `{{ node.labels.loopback }}/32` gives each node its own.",
})
export class LoopbackSpec {
  @Text(NEW_INTERFACE) readonly name!: string;
  @Text(ONE_ADDRESS) readonly subnet!: string;
}

/** A part of a virtual routing domain: several parts of one `vrf` are joined by ascending `seq`. */
@filterLists('import', 'export')
@Ruled({
  problems: ({ community, communities }) =>
    community === undefined || communities === undefined
      ? []
      : [{ at: 'communities', code: 'forbidden', message: ONE }],
  schema: { not: { required: ['community', 'communities'] } },
  expressions: [{ rule: '!has(self.community) || !has(self.communities)', message: ONE, fieldPath: '.communities' }],
})
@OnlyWith('vni', 'vtep', NO_TUNNEL)
@Requires('routeTarget', 'vni', TOGETHER)
@Requires('vni', 'routeTarget', TOGETHER)
@About('A part of a VRF (virtual routing domain). Objects with the same `vrf` are merged, lowest `seq` first.')
@Fields({
  vrf: 'Name of the VRF and of its interface, at most 12 characters.',
  seq: 'Position of this part among those of the same VRF. If parts disagree, the lowest wins. Default: 1.',
  vni: 'VXLAN network id of the VRF, which makes it reachable from other nodes through EVPN. Needs `routeTarget`.',
  routeTarget: 'EVPN route target that is imported and exported, such as `64512:100`. Needs `vni`.',
  vtep: 'Local address of the VXLAN tunnel. Default: chosen by the kernel.',
  localAs: "AS number of the VRF's BGP instance. Default: that of the node's main instance.",
  import: 'Which routes of the main table the VRF imports. Default: none.',
  export: 'Which routes of the VRF the main table imports. Default: none.',
  aggregate:
    'Networks that are announced as one route. Traffic to an address in them that no more specific route covers is dropped.',
  sbrPrefixes: 'Source-based routing: traffic from these networks uses the table of the VRF.',
  community: 'BGP community of exported routes, such as `64512:100` or `no-export`. Cannot be used with `communities`.',
  communities: 'BGP communities of exported routes. Cannot be used with `community`.',
  loopbacks: 'Interfaces that give the node an address of its own inside the VRF.',
  mtu: "MTU in bytes of the VRF's bridge and tunnel. Default: chosen by the kernel.",
})
export class VrfSpec extends NodeSpec {
  @Text(VRF_NAME) readonly vrf!: string;
  @Optional() @Whole(1, 65_534) readonly seq?: number;
  @Optional() @Whole(1, MAX_VNI) readonly vni?: number;
  @Optional() @Text(ROUTE_TARGET) readonly routeTarget?: string;
  /** The local address of the tunnel. Default: chosen by the kernel. */
  @Optional() @Text(ADDRESS) readonly vtep?: string;
  @Optional() @Whole(1, MAX_AS) readonly localAs?: number;
  @Optional() @NestedList(() => RouteFilter) readonly import?: readonly RouteFilter[];
  @Optional() @NestedList(() => RouteFilter) readonly export?: readonly RouteFilter[];
  @Optional() @TextList(NETWORK) readonly aggregate?: readonly string[];
  @Optional() @TextList(NETWORK) readonly sbrPrefixes?: readonly string[];
  @Optional() @Text(COMMUNITY) readonly community?: string;
  @Optional() @TextList(COMMUNITY, 1) readonly communities?: readonly string[];
  @Optional() @NestedList(() => LoopbackSpec) readonly loopbacks?: readonly LoopbackSpec[];
  @Optional() @Whole(1_000, 9_216) readonly mtu?: number;
}

export const vrf: Kind = { name: 'Vrf', spec: VrfSpec, role: 'state' };

function isRouteTarget(text: string): boolean {
  if (isPair(text, 65_535, 4_294_967_295) || isPair(text, 4_294_967_295, 65_535)) return true;
  const [, address = '', number = ''] = /^([0-9.]+):([0-9]+)$/.exec(text) ?? [];
  return ADDRESS.problem(address) === undefined && isNumber(number, 65_535);
}

function isPair(text: string, most: number, mostAfter: number): boolean {
  const [, before = '', after = ''] = /^([0-9]+):([0-9]+)$/.exec(text) ?? [];
  return isNumber(before, most) && isNumber(after, mostAfter);
}

const isNumber = (text: string, most: number): boolean => /^(0|[1-9][0-9]{0,9})$/.test(text) && Number(text) <= most;
