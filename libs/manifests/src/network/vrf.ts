import { parseCidr } from './ip-address.js';
import type { RouteFilter } from '../kinds/route-filter.js';
import type { VrfSpec } from '../kinds/vrf.js';
import type { Link, LinkAddress, LookupRule, Route } from './elements.js';
import { compareText, type NetworkFragments, type Read } from './fragments.js';

/** What is fixed by the first part that says it; vni and routeTarget come together. */
export const FIXED = ['vni', 'routeTarget', 'vtep', 'localAs', 'mtu'] as const;
export type Fixed = Pick<VrfSpec, (typeof FIXED)[number]>;

/** A VRF of the node, joined from all parts that name it. */
export interface Vrf extends Fixed {
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

/** A part that says otherwise than an earlier one; the earlier one holds. */
export interface Overruled {
  readonly part: string;
  readonly field: (typeof FIXED)[number];
  readonly by: string;
}

/**
 * The VRFs of a node, by name, and what of their parts does not hold. Parts are joined by ascending seq, then by their
 * names.
 */
export function vrfsOf(fragments: NetworkFragments): {
  readonly vrfs: readonly Vrf[];
  readonly overruled: readonly Overruled[];
} {
  const parts = new Map<string, Read<VrfSpec>[]>();
  for (const part of fragments.vrfs) parts.set(part.spec.vrf, [...(parts.get(part.spec.vrf) ?? []), part]);
  const overruled: Overruled[] = [];
  const vrfs = [...parts]
    .sort(([a], [b]) => compareText(a, b))
    .map(([name, unsorted]) => {
      const sorted = [...unsorted].sort(
        (a, b) => (a.spec.seq ?? DEFAULT_SEQ) - (b.spec.seq ?? DEFAULT_SEQ) || compareText(a.name, b.name),
      );
      return joined(name, sorted, overruled);
    });
  return { vrfs, overruled };
}

/** The bridge and the tunnel of a VRF with a VNI. */
export const vrfBridge = (name: string): string => `br.${name}`;
export const vrfTunnel = (name: string): string => `vx.${name}`;

/** Of a part that does not say its place. */
const DEFAULT_SEQ = 1;
/** Where the tables of VRFs begin: above what people give their own. */
const FIRST_TABLE = 2 ** 24;

/**
 * By the name alone: a VRF that comes or goes moves no other one to another table. Two names that meet are refused.
 */
export function tableOf(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193) >>> 0;
  return FIRST_TABLE + (hash % FIRST_TABLE);
}

/** The links of a VRF. */
export function vrfLinks(vrf: Vrf): readonly Link[] {
  const { name, vni, vtep, mtu } = vrf;
  const loopbacks = vrf.loopbacks.map((loopback): Link => ({ name: loopback.name, type: 'dummy', master: name }));
  if (vni === undefined) return [{ name, type: 'vrf', table: vrf.table }, ...loopbacks];
  const size = mtu === undefined ? {} : { mtu };
  return [
    { name, type: 'vrf', table: vrf.table },
    { name: vrfBridge(name), type: 'bridge', master: name, ...size },
    {
      name: vrfTunnel(name),
      type: 'vxlan',
      vni,
      master: vrfBridge(name),
      learning: false,
      neighSuppress: true,
      ...size,
      ...(vtep === undefined ? {} : { local: vtep }),
    },
    ...loopbacks,
  ];
}

export const vrfAddresses = (vrf: Vrf): readonly LinkAddress[] =>
  vrf.loopbacks.map(({ name, subnet }) => ({ link: name, address: subnet }));

/** Above every metric that anybody gives: what no route of the VRF takes must not go on to the main table. */
const LAST_METRIC = 4_278_198_272;
export const vrfRoutes = ({ table }: Vrf): readonly Route[] =>
  ['0.0.0.0/0', '::/0'].map((to) => ({ table, to, type: 'unreachable', metric: LAST_METRIC }) as const);

/** After the kernel's rule for VRFs, before that for the main table. */
const SOURCE_PRIORITY = 3_000;
export const vrfRules = ({ table, sbrPrefixes }: Vrf): readonly LookupRule[] =>
  sbrPrefixes.map((from) => ({ family: parseCidr(from)?.family ?? 4, priority: SOURCE_PRIORITY, table, from }));

function joined(name: string, parts: readonly Read<VrfSpec>[], overruled: Overruled[]): Vrf {
  const fixed: { -readonly [F in (typeof FIXED)[number]]?: VrfSpec[F] } = {};
  const by = new Map<string, string>();
  for (const { id, spec } of parts) {
    for (const field of FIXED) {
      const value = spec[field];
      if (value === undefined) continue;
      const owner = by.get(field);
      if (owner === undefined) {
        Object.assign(fixed, { [field]: value });
        by.set(field, id);
      } else if (fixed[field] !== value) overruled.push({ part: id, field, by: owner });
    }
  }
  const texts = (of: (spec: Read<VrfSpec>['spec']) => readonly string[] | undefined): readonly string[] => [
    ...new Set(parts.flatMap(({ spec }) => of(spec) ?? [])),
  ];
  return {
    ...fixed,
    name,
    table: tableOf(name),
    parts: parts.map(({ id }) => id),
    import: filtersOf(parts.map(({ spec }) => spec.import)),
    export: filtersOf(parts.map(({ spec }) => spec.export)),
    aggregate: texts((spec) => spec.aggregate),
    sbrPrefixes: texts((spec) => spec.sbrPrefixes),
    communities: texts((spec) => spec.communities ?? (spec.community === undefined ? undefined : [spec.community])),
    loopbacks: parts.flatMap(({ spec }) => spec.loopbacks ?? []),
  };
}

/** Lists one behind the other, each by its own seq; a line that was there already says nothing more. */
export function filtersOf(lists: readonly (readonly RouteFilter[] | undefined)[]): readonly RouteFilter[] {
  const lines = new Map<string, RouteFilter>();
  for (const list of lists) {
    const sorted = (list ?? [])
      .map((filter, i) => ({ filter, seq: filter.seq ?? i + 1 }))
      .sort((a, b) => a.seq - b.seq);
    for (const {
      filter: { cidr, action, ge, le },
    } of sorted) {
      const key = JSON.stringify([cidr, action, ge, le]);
      if (!lines.has(key))
        lines.set(key, { cidr, action, ...(ge === undefined ? {} : { ge }), ...(le === undefined ? {} : { le }) });
    }
  }
  return [...lines.values()];
}
