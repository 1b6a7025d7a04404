import type { Fragment } from '#libs/contracts';
import { Ruled, type Class, type Problem } from '../shape/checked.js';
import { About, Fields } from '../shape/description.js';
import { TextList } from '../shape/forms.js';
import { FORMS } from './functions/forms.js';
import type { Kind, SelectingSpec } from './kind.js';

/** So many addresses a name has at most. */
export const MOST_ADDRESSES = 64;

/** The IPv4 addresses of a host name. */
@About(
  'The IPv4 addresses of a host name, which is the name of the object. Sluice publishes it for every name that a CNFService, CNFLocalService or CNFHubSite has.',
)
@Fields({ addresses: 'The IPv4 addresses, lowest first.' })
@Ruled({
  problems: ({ addresses }) => listProblems(addresses),
  schema: { properties: { addresses: { maxItems: MOST_ADDRESSES } } },
})
export class ResolvedNameSpec {
  @TextList(FORMS.address, 1) readonly addresses!: readonly string[];
}

function listProblems(addresses: unknown): readonly Problem[] {
  if (!Array.isArray(addresses) || !addresses.every((one) => typeof one === 'string')) return [];
  if (addresses.length > MOST_ADDRESSES)
    return [{ at: 'addresses', code: 'too-many', message: `must have at most ${MOST_ADDRESSES} addresses` }];
  const sorted = sortedAddresses(addresses);
  if (sorted.join() === addresses.join()) return [];
  return [{ at: 'addresses', code: 'bad-order', message: `must be sorted, each once: ${sorted.join(', ')}` }];
}

/** Addresses in numerical order, each once: the order of answers of a DNS server has no meaning. */
export const sortedAddresses = (addresses: readonly string[]): readonly string[] =>
  [...new Set(addresses)].sort((a, b) => numberOf(a) - numberOf(b));

const numberOf = (address: string): number => address.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0);

/** What a fragment of this kind says about its name; empty for anything else. */
export const addressesIn = ({ kind, spec }: Pick<Fragment, 'kind' | 'spec'>): readonly string[] => {
  const addresses: unknown = kind === resolvedName.name ? spec?.['addresses'] : undefined;
  return Array.isArray(addresses) ? (addresses as readonly string[]) : [];
};

/** It selects no nodes: what refers to it does. */
export const resolvedName: Kind = {
  name: 'ResolvedName',
  spec: ResolvedNameSpec as unknown as Class<SelectingSpec>,
  role: 'input',
};

/** The id of the fragment with the addresses of a host name. */
export const resolvedNameId = (host: string): string => `${resolvedName.name}/${host}`;
