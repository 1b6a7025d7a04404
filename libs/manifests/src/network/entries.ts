import type { Config, ConfigEntry } from '#libs/contracts';
import type { Link } from './elements.js';
import { isNetworkEntry } from './fragments.js';
import { networkOf } from './network.js';

/** The kinds of the elements of a network. No fragment has them: they result from its fragments together. */
export const ELEMENT_KINDS = ['NetworkLink', 'NetworkAddress', 'NetworkRoute', 'NetworkRule', 'NetworkFrr'] as const;
export type ElementKind = (typeof ELEMENT_KINDS)[number];

/** The lowest is created first and removed last. */
const LINK_RANK: Readonly<Record<Link['type'], number>> = { vrf: 1, bridge: 2, dummy: 3, vlan: 3, veth: 3, vxlan: 3 };

/**
 * The elements of a config's network, each as an entry that can be created, read back and removed separately. The name
 * is a key: sorted, it gives the order in which elements are created. The part after the colon is for people.
 */
export function networkEntries(config: Config): readonly ConfigEntry[] {
  if (!config.fragments.some(isNetworkEntry)) return [];
  const { links, addresses, routes, rules, frr } = networkOf(config);
  return [
    ...links.map((link) => element('NetworkLink', `net-1-${LINK_RANK[link.type]}:link ${link.name}`, link)),
    ...addresses.map((address) =>
      element('NetworkAddress', `net-2-0:address ${address.address} on ${address.link}`, address),
    ),
    ...routes.map((route) =>
      element(
        'NetworkRoute',
        `net-3-${route.via === undefined ? 1 : 2}:route ${route.to} in table ${route.table}${route.metric === undefined ? '' : ` metric ${route.metric}`}`,
        route,
      ),
    ),
    ...rules.map((rule) => {
      const words = [
        ...(rule.from === undefined ? [] : [`from ${rule.from}`]),
        ...(rule.to === undefined ? [] : [`to ${rule.to}`]),
        ...(rule.iif === undefined ? [] : [`iif ${rule.iif}`]),
      ];
      return element(
        'NetworkRule',
        `net-4-0:rule ${rule.priority} of IPv${rule.family} ${words.join(' ')} in table ${rule.table}`,
        rule,
      );
    }),
    ...(frr === undefined ? [] : [element('NetworkFrr', 'net-5-0:frr', frr)]),
  ].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

/**
 * The name of an entry for people: a fragment by its kind and name, an element by its description, because no person
 * wrote it.
 */
export function wordsFor({ kind, name }: Pick<ConfigEntry, 'kind' | 'name'>): string {
  const isElement = (ELEMENT_KINDS as readonly string[]).includes(kind);
  return isElement ? name.slice(name.indexOf(':') + 1) : `${kind}/${name}`;
}

const element = (kind: ElementKind, name: string, spec: object): ConfigEntry => ({
  kind,
  name,
  spec: spec as ConfigEntry['spec'],
});
