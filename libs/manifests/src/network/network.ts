import type { Config, ConfigEntry } from '#libs/contracts';
import type { TableRoute, TableRule } from '../kinds/routing-table.js';
import type { LookupRule, Network, Route } from './elements.js';
import { frrOf, peeringsOf } from './frr.js';
import { given, networkFragments } from './fragments.js';
import { familyOf, networkText } from './ip-address.js';
import { layer2Addresses, layer2Links } from './layer2.js';
import { vrfAddresses, vrfLinks, vrfRoutes, vrfRules, vrfsOf } from './vrf.js';

/**
 * Everything that the network of a node with this config should have. Pure, and the same for the same fragments in any
 * order.
 */
export function networkOf(config: Config, holds?: (entry: ConfigEntry) => boolean): Network {
  const fragments = networkFragments(config, holds);
  const { vrfs } = vrfsOf(fragments);
  return {
    links: [...vrfs.flatMap(vrfLinks), ...fragments.layer2.flatMap(({ spec }) => layer2Links(spec))],
    addresses: [...vrfs.flatMap(vrfAddresses), ...fragments.layer2.flatMap(({ spec }) => layer2Addresses(spec))],
    routes: [
      ...vrfs.flatMap(vrfRoutes),
      ...fragments.tables.flatMap(({ spec }) => (spec.routes ?? []).map((route) => routeOf(spec.tableId, route))),
    ],
    rules: [
      ...vrfs.flatMap(vrfRules),
      ...fragments.tables.flatMap(({ spec }) => (spec.rules ?? []).flatMap((rule) => rulesOf(spec.tableId, rule))),
    ],
    frr: frrOf(vrfs, peeringsOf(fragments)),
  };
}

const routeOf = (table: number, { to, via, interface: dev, blackhole }: TableRoute): Route => ({
  table,
  to: networkText(to),
  type: blackhole === true ? 'blackhole' : 'unicast',
  ...given({ via, dev }),
});

/** A rule without an address becomes one of each family. */
function rulesOf(table: number, { priority, from, to, interface: iif }: TableRule): readonly LookupRule[] {
  const address = from ?? to;
  const families = address === undefined ? ([4, 6] as const) : [familyOf(address)];
  const rest = given({ from: from && networkText(from), to: to && networkText(to), iif });
  return families.map((family) => ({ family, priority, table, ...rest }));
}
