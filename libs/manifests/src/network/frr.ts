import { parseCidr } from './ip-address.js';
import type { BgpPeeringSpec } from '../kinds/bgp-peering.js';
import type { Layer2NetworkSpec } from '../kinds/layer2-network.js';
import type { RouteFilter } from '../kinds/route-filter.js';
import { shownCommunities } from './communities.js';
import type { FrrLine, FrrPart } from './elements.js';
import type { NetworkFragments, Read } from './fragments.js';
import { bridgeName } from './layer2.js';
import { filtersOf, type Vrf } from './vrf.js';

/** A peering with what it refers to. */
export interface Peering {
  readonly spec: Read<BgpPeeringSpec>['spec'];
  readonly network: Read<Layer2NetworkSpec>['spec'];
}

/** What FRR should have; undefined when nothing needs it. */
export function frrOf(vrfs: readonly Vrf[], peerings: readonly Peering[]): FrrPart | undefined {
  const routed = vrfs.filter(needsBgp);
  const leaks = leaksOf(routed, peerings);
  const instances = [
    ...new Set([
      ...routed.map(({ name }) => name),
      ...peerings.map(({ network }) => network.vrf ?? DEFAULT),
      // What is imported from needs an instance too: FRR would make one by itself, and nobody would know whose it is.
      ...leaks.flatMap(({ into, from }) => [into, from]),
    ]),
  ].sort();
  if (instances.length === 0) return undefined;
  const lines = [
    ...routed.flatMap((vrf) => [
      ...filterLines(`sluice-${vrf.name}-import`, vrf.import),
      ...filterLines(`sluice-${vrf.name}-export`, vrf.export),
    ]),
    ...peerings.flatMap((peering) => peeringFilters(peering)),
    ...instances.flatMap((into) =>
      leakMap(
        into,
        leaks.filter((leak) => leak.into === into),
      ),
    ),
    ...routed.flatMap(vrfLines),
    ...instances.map((name) => instanceLine(name, vrfs, peerings, leaks)),
  ];
  const ownAs = [...vrfs.map(({ localAs }) => localAs), ...peerings.map(({ spec }) => spec.localAs)].find(
    (as) => as !== undefined,
  );
  return { lines, ...(ownAs === undefined ? {} : { ownAs }) };
}

/** The peerings of a node that refer to something with gateways. */
export function peeringsOf(fragments: NetworkFragments): readonly Peering[] {
  const byName = new Map(fragments.layer2.map(({ name, spec }) => [name, spec]));
  return fragments.peerings.flatMap(({ spec }) => {
    const network = byName.get(spec.network);
    return network === undefined || (network.anycastGateways ?? []).length === 0 ? [] : [{ spec, network }];
  });
}

/** Whether a VRF exchanges routes with anybody. */
export const needsBgp = (vrf: Vrf): boolean =>
  vrf.vni !== undefined || vrf.import.length > 0 || vrf.export.length > 0 || vrf.aggregate.length > 0;

/** Of the instance without a VRF, in FRR's own words. */
const DEFAULT = 'default';
/** The AS of the node's own BGP, which only the node knows. */
const OWN_AS = '@';
const FAMILIES = [
  { family: 4, word: 'ipv4', list: 'ip' },
  { family: 6, word: 'ipv6', list: 'ipv6' },
] as const;

const leaf = (line: string): FrrLine => ({ line, below: [] });
const familyOf = (cidr: string): 4 | 6 => parseCidr(cidr)?.family ?? 4;

/** Routes of one instance that go into another one. */
interface Leak {
  readonly into: string;
  readonly from: string;
  /** Name and lines of a list; without it, everything. */
  readonly list: { readonly name: string; readonly filters: readonly RouteFilter[] } | undefined;
  readonly communities: readonly string[];
}

function leaksOf(vrfs: readonly Vrf[], peerings: readonly Peering[]): readonly Leak[] {
  const leaks = vrfs.flatMap((vrf): Leak[] => [
    ...(vrf.import.length === 0
      ? []
      : [
          {
            into: DEFAULT,
            from: vrf.name,
            list: { name: `sluice-${vrf.name}-import`, filters: vrf.import },
            communities: [],
          },
        ]),
    ...(vrf.export.length === 0
      ? []
      : [
          {
            into: vrf.name,
            from: DEFAULT,
            list: { name: `sluice-${vrf.name}-export`, filters: vrf.export },
            communities: vrf.communities,
          },
        ]),
  ]);
  const foreign = peerings.flatMap(({ spec, network }): Leak[] => {
    const [from, into] = [network.vrf ?? DEFAULT, spec.vrf ?? network.vrf ?? DEFAULT];
    return from === into ? [] : [{ into, from, list: undefined, communities: [] }];
  });
  const known = new Set<string>();
  return [...leaks, ...foreign].filter((leak) => {
    const key = JSON.stringify(leak);
    return known.has(key) ? false : (known.add(key), true);
  });
}

/** A list's places are numbered again: the parts of a VRF number theirs on their own. */
function filterLines(name: string, filters: readonly RouteFilter[]): readonly FrrLine[] {
  return filters.map(({ cidr, action, ge, le }, i) => {
    const range = [...(ge === undefined ? [] : [`ge ${ge}`]), ...(le === undefined ? [] : [`le ${le}`])];
    const list = familyOf(cidr) === 4 ? 'ip' : 'ipv6';
    return leaf(
      [`${list} prefix-list ${name} seq ${(i + 1) * 5} ${action} ${parseCidr(cidr)?.network ?? cidr}`, ...range].join(
        ' ',
      ),
    );
  });
}

interface MapStep {
  readonly match: readonly string[];
  readonly set: readonly string[];
}

const routeMap = (name: string, steps: readonly MapStep[]): readonly FrrLine[] =>
  steps.map(({ match, set }, i) => ({
    line: `route-map ${name} permit ${(i + 1) * 10}`,
    below: [...match, ...set].map(leaf),
  }));

/** One step for each family that a list has lines of; all routes without a list. */
function stepsFor(list: Leak['list'], match: readonly string[], set: readonly string[]): readonly MapStep[] {
  if (list === undefined) return [{ match, set }];
  return FAMILIES.filter(({ family }) => list.filters.some(({ cidr }) => familyOf(cidr) === family)).map((of) => ({
    match: [`match ${of.list} address prefix-list ${list.name}`, ...match],
    set,
  }));
}

function leakMap(into: string, leaks: readonly Leak[]): readonly FrrLine[] {
  const steps = leaks.flatMap(({ from, list, communities }) =>
    stepsFor(
      list,
      [`match source-vrf ${from}`],
      communities.length === 0 ? [] : [`set community ${shownCommunities(communities).join(' ')} additive`],
    ),
  );
  return routeMap(`sluice-into-${into}`, steps);
}

const groupOf = ({ network }: Peering): string => `sluice-${bridgeName(network.id)}`;

/**
 * Without a list everything passes; with one, what it permits. A peer without any policy would get nothing (RFC 8212).
 */
function peeringFilters(peering: Peering): readonly FrrLine[] {
  const group = groupOf(peering);
  return [
    ['in', peering.spec.import],
    ['out', peering.spec.export],
  ].flatMap(([way, written]) => {
    const filters = filtersOf([written as readonly RouteFilter[] | undefined]);
    const name = `${group}-${String(way)}`;
    return [
      ...filterLines(name, filters),
      ...routeMap(name, stepsFor(filters.length === 0 ? undefined : { name, filters }, [], [])),
    ];
  });
}

function vrfLines(vrf: Vrf): readonly FrrLine[] {
  const below = [
    ...(vrf.vni === undefined ? [] : [`vni ${vrf.vni}`]),
    ...vrf.aggregate.map(
      (cidr) => `${familyOf(cidr) === 4 ? 'ip' : 'ipv6'} route ${parseCidr(cidr)?.network ?? cidr} blackhole`,
    ),
  ];
  return below.length === 0 ? [] : [{ line: `vrf ${vrf.name}`, below: below.map(leaf) }];
}

function instanceLine(name: string, vrfs: readonly Vrf[], all: readonly Peering[], leaks: readonly Leak[]): FrrLine {
  const vrf = vrfs.find((each) => each.name === name);
  const peerings = all.filter(({ network }) => (network.vrf ?? DEFAULT) === name);
  const as =
    name === DEFAULT
      ? undefined
      : (vrf?.localAs ?? peerings.map(({ spec }) => spec.localAs).find((own) => own !== undefined));
  const families = FAMILIES.map(({ family, word }): FrrLine => ({
    line: `address-family ${word} unicast`,
    below: [
      ...(vrf === undefined ? [] : ['redistribute connected', 'redistribute static']),
      ...peerings.filter(({ network }) => hasGateway(network, family)).flatMap((peering) => exchange(peering, family)),
      ...leaking(
        leaks.filter(({ into }) => into === name),
        family,
      ),
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

function leaking(leaks: readonly Leak[], family: 4 | 6): readonly string[] {
  const froms = [
    ...new Set(
      leaks
        .filter(({ list }) => list === undefined || list.filters.some(({ cidr }) => familyOf(cidr) === family))
        .map(({ from }) => from),
    ),
  ];
  const [first] = leaks;
  return first === undefined || froms.length === 0
    ? []
    : [...froms.map((from) => `import vrf ${from}`), `import vrf route-map sluice-into-${first.into}`];
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
        (gateway) => `bgp listen range ${parseCidr(gateway)?.network ?? gateway} peer-group ${group}`,
      ),
    ),
  ].map(leaf);
}

function exchange(peering: Peering, family: 4 | 6): readonly string[] {
  const group = groupOf(peering);
  const { maximumPrefixes } = peering.spec;
  return [
    // FRR activates IPv4 of itself, and does not show it.
    ...(family === 6 ? [`neighbor ${group} activate`] : []),
    ...(maximumPrefixes === undefined ? [] : [`neighbor ${group} maximum-prefix ${maximumPrefixes}`]),
    `neighbor ${group} route-map ${group}-in in`,
    `neighbor ${group} route-map ${group}-out out`,
  ];
}

const SECONDS: Readonly<Record<string, number>> = { h: 3_600, m: 60, s: 1, ms: 0.001 };

/** Of a duration whose form holds. */
const secondsOf = (text: string): number =>
  [...text.matchAll(/(\d+)(ms|h|m|s)/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * (SECONDS[unit ?? ''] ?? 0),
    0,
  );
