import { FRAGMENT_NAME } from '../fragment-name.js';
import { About, Fields } from '../shape/description.js';
import { durationMs } from '../duration.js';
import { NestedList, Optional, Requires, Ruled, type Problem } from '../shape/checked.js';
import { Duration, Flag, Text, Whole } from '../shape/forms.js';
import { VRF_NAME } from './interface-name.js';
import { NodeSpec, type Kind } from './kind.js';
import { filterLists, RouteFilter } from './route-filter.js';
import { MAX_AS } from './vrf.js';

const MAX_PREFIXES = 4_294_967_295;
/** BGP's hold time: at least 3 seconds, in 16 bits. */
const [MIN_HOLD_S, MAX_HOLD_S] = [3, 65_535];
const TOGETHER = 'holdTime and keepaliveTime must be used together';

/** BGP peers that may connect from the gateway networks of a Layer2Network. */
@filterLists('import', 'export')
@Ruled({ problems: timerProblems, schema: {} })
@Requires('keepaliveTime', 'holdTime', TOGETHER)
@Requires('holdTime', 'keepaliveTime', TOGETHER)
@About('Accepts BGP sessions from peers in the networks of the gateways of a Layer2Network.')
@Fields({
  network: 'Name of a Layer2Network that the node also has and that has gateways.',
  remoteAs: 'AS number of the peers.',
  localAs: 'AS number that the node uses toward the peers. Default: that of the VRF.',
  vrf: "VRF that receives the peers' routes. Default: that of the network.",
  import: 'Which routes are accepted from the peers. Default: all.',
  export: 'Which routes are announced to the peers. Default: all.',
  maximumPrefixes: 'How many routes a peer may announce before its session is closed. Default: no limit.',
  holdTime: 'How long a silent peer keeps its session, from `3s` to 65,535 seconds. Needs `keepaliveTime`.',
  keepaliveTime: 'How often the node sends keepalives, in whole seconds, shorter than `holdTime`. Needs `holdTime`.',
  bfd: 'Whether BFD detects lost peers faster. Default: false.',
})
export class BgpPeeringSpec extends NodeSpec {
  /** The name of the Layer2Network. It must be on the node and have gateways. */
  @Text(FRAGMENT_NAME) readonly network!: string;
  @Whole(1, MAX_AS) readonly remoteAs!: number;
  @Optional() @Whole(1, MAX_AS) readonly localAs?: number;
  /** The VRF for the peers' routes. Default: the VRF of the Layer2Network. */
  @Optional() @Text(VRF_NAME) readonly vrf?: string;
  @Optional() @NestedList(() => RouteFilter) readonly import?: readonly RouteFilter[];
  @Optional() @NestedList(() => RouteFilter) readonly export?: readonly RouteFilter[];
  @Optional() @Whole(1, MAX_PREFIXES) readonly maximumPrefixes?: number;
  @Optional() @Duration() readonly holdTime?: string;
  @Optional() @Duration() readonly keepaliveTime?: string;
  @Optional() @Flag() readonly bfd?: boolean;
}

export const bgpPeering: Kind = { name: 'BgpPeering', spec: BgpPeeringSpec, role: 'state' };

function timerProblems(spec: Readonly<Record<string, unknown>>): readonly Problem[] {
  const problems: Problem[] = [];
  const [hold, keepalive] = [secondsOf(spec['holdTime']), secondsOf(spec['keepaliveTime'])];
  if (hold !== undefined && (!Number.isInteger(hold) || hold < MIN_HOLD_S || hold > MAX_HOLD_S)) {
    problems.push({
      at: 'holdTime',
      code: 'out-of-range',
      message: `must be whole seconds from ${MIN_HOLD_S} to ${MAX_HOLD_S}`,
    });
  }
  if (keepalive !== undefined && (!Number.isInteger(keepalive) || (hold !== undefined && keepalive >= hold))) {
    problems.push({
      at: 'keepaliveTime',
      code: 'out-of-range',
      message: 'must be whole seconds, and less than holdTime',
    });
  }
  return problems;
}

function secondsOf(value: unknown): number | undefined {
  const ms = typeof value === 'string' ? durationMs(value) : undefined;
  return ms === undefined ? undefined : ms / 1_000;
}
