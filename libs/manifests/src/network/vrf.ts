import type { RouteFilter } from '../kinds/route-filter.js';
import type { VrfSpec } from '../kinds/vrf.js';
import type { Link, LinkAddress, LookupRule, Route } from './elements.js';
import { compareText, given, type NetworkFragment, type NetworkFragments } from './fragments.js';
import { familyOf } from './ip-address.js';

/** Fields that the first part with them sets; vni and routeTarget are set together. */
const SETTINGS = ['vni', 'routeTarget', 'vtep', 'localAs', 'mtu'] as const;
type Setting = (typeof SETTINGS)[number];

/** A VRF of the node, joined from all parts that name it. */
export interface Vrf extends Pick<VrfSpec, Setting> {
  readonly name: string;
  readonly table: number;
  /** Ids of its parts, in the order in which they were joined. */
  readonly parts: readonly string[];
  readonly import: readonly RouteFilter[];
  readonly export: readonly RouteFilter[];
  readonly aggregate: readonly string[];
  readonly sbrPrefixes: readonly string[];
  readonly communities: readonly string[];
  readonly loopbacks: readonly { readonly name: string; readonly subnet: string }[];
}

/** A part that contradicts an earlier one. The earlier one wins. */
interface SettingConflict {
  readonly part: string;
  readonly field: Setting;
  readonly by: string;
}

/** The VRFs of a node, by name, and contradictions of their parts. Parts are joined by ascending seq, then by name. */
export function vrfsOf(fragments: NetworkFragments): {
  readonly vrfs: readonly Vrf[];
  readonly overruled: readonly SettingConflict[];
} {
  const placeOf = ({ spec: { seq = DEFAULT_SEQ } }: VrfPart): number => seq;
  const sorted = fragments.vrfs.toSorted((a, b) => placeOf(a) - placeOf(b) || compareText(a.name, b.name));
  const overruled: SettingConflict[] = [];
  const vrfs = [...new Set(sorted.map(({ spec }) => spec.vrf))].sort(compareText).map((name) =>
    joined(
      name,
      sorted.filter(({ spec }) => spec.vrf === name),
      overruled,
    ),
  );
  return { vrfs, overruled };
}
type VrfPart = NetworkFragment<VrfSpec>;

/** The place of a part that does not set it. */
const DEFAULT_SEQ = 1;
/** The first table number of VRFs, above those that people use. */
const FIRST_TABLE = 2 ** 24;

/**
 * Derived from the name alone, so that adding or removing a VRF moves no other one to another table. Two names with the
 * same number are refused.
 */
export function tableOf(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193) >>> 0;
  return FIRST_TABLE + (hash % FIRST_TABLE);
}

/** The links of a VRF. */
export function vrfLinks(vrf: Vrf): readonly Link[] {
  const { name, vni, vtep, mtu, table } = vrf;
  const bridge = `br.${name}`;
  const port = { master: bridge, learning: false, neighSuppress: true };
  const tunnel: readonly Link[] =
    vni === undefined
      ? []
      : [
          { name: bridge, type: 'bridge', master: name, ...given({ mtu }) },
          { name: `vx.${name}`, type: 'vxlan', vni, ...port, ...given({ mtu, local: vtep }) },
        ];
  const loopbacks = vrf.loopbacks.map((loopback): Link => ({ name: loopback.name, type: 'dummy', master: name }));
  return [{ name, type: 'vrf', table }, ...tunnel, ...loopbacks];
}

export const vrfAddresses = (vrf: Vrf): readonly LinkAddress[] =>
  vrf.loopbacks.map(({ name, subnet }) => ({ link: name, address: subnet }));

/** Above every metric that people use: what no route of the VRF matches must not continue in the main table. */
const LAST_METRIC = 4_278_198_272;
export const vrfRoutes = ({ table }: Vrf): readonly Route[] =>
  ['0.0.0.0/0', '::/0'].map((to) => ({ table, to, type: 'unreachable', metric: LAST_METRIC }) as const);

/** After the kernel's rule for VRFs, before that for the main table. */
const SOURCE_PRIORITY = 3_000;
export const vrfRules = ({ table, sbrPrefixes }: Vrf): readonly LookupRule[] =>
  sbrPrefixes.map((from) => ({ family: familyOf(from), priority: SOURCE_PRIORITY, table, from }));

function joined(name: string, parts: readonly VrfPart[], overruled: SettingConflict[]): Vrf {
  const first = (field: Setting): VrfPart | undefined => parts.find(({ spec }) => spec[field] !== undefined);
  const settings = Object.fromEntries(SETTINGS.map((field) => [field, first(field)?.spec[field]]));
  for (const { id, spec } of parts)
    for (const field of SETTINGS)
      if (spec[field] !== undefined && spec[field] !== settings[field])
        overruled.push({ part: id, field, by: first(field)?.id ?? id });
  const texts = (of: (spec: VrfPart['spec']) => readonly string[] | undefined): readonly string[] => [
    ...new Set(parts.flatMap(({ spec }) => of(spec) ?? [])),
  ];
  return {
    ...given(settings),
    name,
    table: tableOf(name),
    parts: parts.map(({ id }) => id),
    import: filtersOf(parts.map(({ spec }) => spec.import)),
    export: filtersOf(parts.map(({ spec }) => spec.export)),
    aggregate: texts((spec) => spec.aggregate),
    sbrPrefixes: texts((spec) => spec.sbrPrefixes),
    communities: texts(({ communities, community }) => communities ?? (community === undefined ? [] : [community])),
    loopbacks: parts.flatMap(({ spec }) => spec.loopbacks ?? []),
  };
}

/** Appends lists one after another, each by its own seq. A repeated line changes nothing. */
export function filtersOf(lists: readonly (readonly RouteFilter[] | undefined)[]): readonly RouteFilter[] {
  const lines = new Map<string, RouteFilter>();
  for (const list of lists) {
    const sorted = (list ?? []).map((filter, i) => ({ ...filter, seq: filter.seq ?? i + 1 }));
    for (const { cidr, action, ge, le } of sorted.sort((a, b) => a.seq - b.seq)) {
      const line = { cidr, action, ...given({ ge, le }) };
      const key = JSON.stringify(line);
      if (!lines.has(key)) lines.set(key, line);
    }
  }
  return [...lines.values()];
}
