import { durationMs } from '../duration.js';
import type { BgpPeeringSpec } from '../kinds/bgp-peering.js';
import type { Layer2NetworkSpec } from '../kinds/layer2-network.js';
import type { RouteFilter } from '../kinds/route-filter.js';
import { shownCommunities } from './communities.js';
import type { FrrLine, FrrPart } from './elements.js';
import type { NetworkFragment, NetworkFragments } from './fragments.js';
import { familyOf, networkText } from './ip-address.js';
import { bridgeName } from './layer2.js';
import { filtersOf, type Vrf } from './vrf.js';

/** A peering with the objects to which it refers. */
export interface Peering {
  readonly spec: NetworkFragment<BgpPeeringSpec>['spec'];
  readonly network: NetworkFragment<Layer2NetworkSpec>['spec'];
}

/** What FRR should have; undefined if nothing needs it. */
export function frrOf(vrfs: readonly Vrf[], peerings: readonly Peering[]): FrrPart | undefined {
  const routed = vrfs.filter(needsBgp);
  const leaks = leaksOf(routed, peerings);
  const instances = [
    ...new Set([
      ...routed.map(({ name }) => name),
      ...peerings.map(({ network }) => network.vrf ?? DEFAULT),
      // An import needs an instance too. Otherwise FRR would create one itself, without an owner.
      ...leaks.flatMap(({ into, from }) => [into, from]),
    ]),
  ].sort();
  if (instances.length === 0) return undefined;
  const lines = [
    ...routed.flatMap((vrf) => [importList(vrf), exportList(vrf)]).flatMap(listLines),
    ...peerings.flatMap(peeringFilters),
    ...instances.flatMap((into) => leakMap(into, leaks)),
    ...routed.flatMap(vrfLines),
    ...instances.map((name) => instanceLine(name, vrfs, peerings, leaks)),
  ];
  const [ownAs] = [...vrfs, ...peerings.map(({ spec }) => spec)].flatMap(({ localAs }) => localAs ?? []);
  return { lines, ...(ownAs === undefined ? {} : { ownAs }) };
}

/** The peerings of a node that refer to a network with gateways. */
export function peeringsOf(fragments: NetworkFragments): readonly Peering[] {
  const byName = new Map(fragments.layer2.map(({ name, spec }) => [name, spec]));
  return fragments.peerings.flatMap(({ spec }) => {
    const network = byName.get(spec.network);
    return network === undefined || (network.anycastGateways ?? []).length === 0 ? [] : [{ spec, network }];
  });
}

/** Whether a VRF exchanges routes with others. */
const needsBgp = (vrf: Vrf): boolean =>
  vrf.vni !== undefined || vrf.import.length > 0 || vrf.export.length > 0 || vrf.aggregate.length > 0;

/** FRR's name for the instance without a VRF. */
const DEFAULT = 'default';
/** The AS of the node's own BGP, which only the node knows. */
const OWN_AS = '@';
const FAMILIES = [
  { family: 4, word: 'ipv4', list: 'ip' },
  { family: 6, word: 'ipv6', list: 'ipv6' },
] as const;

const leaf = (line: string): FrrLine => ({ line, below: [] });
const ipWord = (cidr: string): string => (familyOf(cidr) === 4 ? 'ip' : 'ipv6');

interface PrefixList {
  readonly name: string;
  readonly filters: readonly RouteFilter[];
}
const importList = (vrf: Vrf): PrefixList => ({ name: `sluice-${vrf.name}-import`, filters: vrf.import });
const exportList = (vrf: Vrf): PrefixList => ({ name: `sluice-${vrf.name}-export`, filters: vrf.export });

/** Routes of one instance that are imported into another one. */
interface RouteLeak {
  readonly into: string;
  readonly from: string;
  /** Undefined: all routes. */
  readonly list: PrefixList | undefined;
  readonly communities: readonly string[];
}

function leaksOf(vrfs: readonly Vrf[], peerings: readonly Peering[]): readonly RouteLeak[] {
  const filtered = vrfs
    .flatMap((vrf) => [
      { into: DEFAULT, from: vrf.name, list: importList(vrf), communities: [] },
      { into: vrf.name, from: DEFAULT, list: exportList(vrf), communities: vrf.communities },
    ])
    .filter(({ list }) => list.filters.length > 0);
  const foreign = peerings
    .map(({ spec, network: { vrf = DEFAULT } }) => ({
      into: spec.vrf ?? vrf,
      from: vrf,
      list: undefined,
      communities: [],
    }))
    .filter(({ into, from }) => into !== from);
  const byText = new Map([...filtered, ...foreign].map((leak): [string, RouteLeak] => [JSON.stringify(leak), leak]));
  return [...byText.values()];
}

/** The lines of a list are numbered again, because each part of a VRF numbers its own. */
const listLines = ({ name, filters }: PrefixList): readonly FrrLine[] =>
  filters.map(({ cidr, action, ge, le }, i) => {
    const range = [...(ge === undefined ? [] : [` ge ${ge}`]), ...(le === undefined ? [] : [` le ${le}`])];
    const place = `${ipWord(cidr)} prefix-list ${name} seq ${(i + 1) * 5}`;
    return leaf(`${place} ${action} ${networkText(cidr)}${range.join('')}`);
  });

interface MapStep {
  readonly match: readonly string[];
  readonly set: readonly string[];
}

const routeMap = (name: string, steps: readonly MapStep[]): readonly FrrLine[] =>
  steps.map(({ match, set }, i) => ({
    line: `route-map ${name} permit ${(i + 1) * 10}`,
    below: [...match, ...set].map(leaf),
  }));

/** One step for each family that has lines in the list; all routes without a list. */
function stepsFor(list: PrefixList | undefined, match: readonly string[], set: readonly string[]): readonly MapStep[] {
  if (list === undefined) return [{ match, set }];
  return FAMILIES.filter(({ family }) => isOfFamily(list, family)).map((of) => ({
    match: [`match ${of.list} address prefix-list ${list.name}`, ...match],
    set,
  }));
}

const isOfFamily = ({ filters }: PrefixList, family: 4 | 6): boolean =>
  filters.some(({ cidr }) => familyOf(cidr) === family);

function leakMap(into: string, leaks: readonly RouteLeak[]): readonly FrrLine[] {
  const steps = leaks
    .filter((leak) => leak.into === into)
    .flatMap(({ from, list, communities }) => {
      const set = communities.length === 0 ? [] : [`set community ${shownCommunities(communities).join(' ')} additive`];
      return stepsFor(list, [`match source-vrf ${from}`], set);
    });
  return routeMap(`sluice-into-${into}`, steps);
}

const groupOf = ({ network }: Peering): string => `sluice-${bridgeName(network.id)}`;

/**
 * Without a list, all routes pass. With one, those that it permits. A peer without any policy would get no routes (RFC
 * 8212).
 */
function peeringFilters(peering: Peering): readonly FrrLine[] {
  const group = groupOf(peering);
  const { import: incoming, export: outgoing } = peering.spec;
  return Object.entries({ in: incoming, out: outgoing }).flatMap(([way, direction]) => {
    const list = { name: `${group}-${way}`, filters: filtersOf([direction]) };
    const steps = stepsFor(list.filters.length === 0 ? undefined : list, [], []);
    return [...listLines(list), ...routeMap(list.name, steps)];
  });
}

function vrfLines(vrf: Vrf): readonly FrrLine[] {
  const below = [
    ...(vrf.vni === undefined ? [] : [`vni ${vrf.vni}`]),
    ...vrf.aggregate.map((cidr) => `${ipWord(cidr)} route ${networkText(cidr)} blackhole`),
  ];
  return below.length === 0 ? [] : [{ line: `vrf ${vrf.name}`, below: below.map(leaf) }];
}

function instanceLine(
  name: string,
  vrfs: readonly Vrf[],
  all: readonly Peering[],
  leaks: readonly RouteLeak[],
): FrrLine {
  const vrf = vrfs.find((each) => each.name === name);
  const peerings = all.filter(({ network }) => (network.vrf ?? DEFAULT) === name);
  const [as] =
    name === DEFAULT ? [] : [vrf, ...peerings.map(({ spec }) => spec)].flatMap((each) => each?.localAs ?? []);
  const families = FAMILIES.map(({ family, word }): FrrLine => ({
    line: `address-family ${word} unicast`,
    below: [
      ...(vrf === undefined ? [] : ['redistribute connected', 'redistribute static']),
      ...peerings.filter(({ network }) => hasGateway(network, family)).flatMap((peering) => exchange(peering, family)),
      ...imports(name, leaks, family),
    ].map(leaf),
  }));
  const evpn: FrrLine = {
    line: 'address-family l2vpn evpn',
    below:
      vrf?.vni === undefined
        ? []
        : [
            'advertise ipv4 unicast',
            'advertise ipv6 unicast',
            `route-target import ${vrf.routeTarget ?? ''}`,
            `route-target export ${vrf.routeTarget ?? ''}`,
          ].map(leaf),
  };
  return {
    line: `router bgp ${as ?? OWN_AS}${name === DEFAULT ? '' : ` vrf ${name}`}`,
    below: [...peerings.flatMap(neighborLines), ...[...families, evpn].filter(({ below }) => below.length > 0)],
  };
}

function imports(into: string, leaks: readonly RouteLeak[], family: 4 | 6): readonly string[] {
  const sources = leaks.filter(
    (leak) => leak.into === into && (leak.list === undefined || isOfFamily(leak.list, family)),
  );
  const lines = new Set(sources.map(({ from }) => `import vrf ${from}`));
  return lines.size === 0 ? [] : [...lines, `import vrf route-map sluice-into-${into}`];
}

const hasGateway = ({ anycastGateways = [] }: Peering['network'], family: 4 | 6): boolean =>
  anycastGateways.some((gateway) => familyOf(gateway) === family);

function neighborLines(peering: Peering): readonly FrrLine[] {
  const group = groupOf(peering);
  const { remoteAs, holdTime, keepaliveTime, bfd } = peering.spec;
  return [
    `neighbor ${group} peer-group`,
    `neighbor ${group} remote-as ${remoteAs}`,
    ...(bfd === true ? [`neighbor ${group} bfd`] : []),
    ...(holdTime === undefined || keepaliveTime === undefined
      ? []
      : [`neighbor ${group} timers ${secondsOf(keepaliveTime)} ${secondsOf(holdTime)}`]),
    ...new Set(
      (peering.network.anycastGateways ?? []).map(
        (gateway) => `bgp listen range ${networkText(gateway)} peer-group ${group}`,
      ),
    ),
  ].map(leaf);
}

function exchange(peering: Peering, family: 4 | 6): readonly string[] {
  const group = groupOf(peering);
  const { maximumPrefixes } = peering.spec;
  return [
    // FRR activates IPv4 by itself, and does not show it.
    ...(family === 6 ? [`neighbor ${group} activate`] : []),
    ...(maximumPrefixes === undefined ? [] : [`neighbor ${group} maximum-prefix ${maximumPrefixes}`]),
    `neighbor ${group} route-map ${group}-in in`,
    `neighbor ${group} route-map ${group}-out out`,
  ];
}

/** The seconds of a valid duration. */
const secondsOf = (text: string): number => (durationMs(text) ?? 0) / 1_000;
