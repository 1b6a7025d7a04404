import { bitsOf, isBroadcast, parseAddress, parseCidr, type ParsedCidr } from './network/ip-address.js';
import { patternForm, type TextForm } from './shape/forms.js';

const CIDR_MESSAGE = 'must be a network such as 10.0.0.0/8 or 2001:db8::/32';

const cidrForm = (wrong: (cidr: ParsedCidr) => string | undefined, length = '[0-9]{1,3}'): TextForm => ({
  code: 'bad-cidr',
  problem: (text) => {
    const cidr = parseCidr(text);
    return cidr === undefined ? CIDR_MESSAGE : wrong(cidr);
  },
  schema: { pattern: `^[0-9A-Fa-f:.]+/${length}$` },
});

/** The form of a network: the address before the slash is that of the network. */
export const NETWORK = cidrForm(({ isNetwork, network }) =>
  isNetwork ? undefined : `must be the address of the network: did you mean ${network}?`,
);

/** The form of a host's address together with the length of its network. */
export const HOST_IN_NETWORK = cidrForm((cidr) => {
  if (cidr.prefix >= bitsOf(cidr.family) - 1) return undefined;
  if (cidr.isNetwork) return 'must be the address of a host, not of its network';
  return isBroadcast(cidr) ? 'must be the address of a host, not the broadcast address of its network' : undefined;
});

/** The form of one address written as a network. */
export const ONE_ADDRESS = cidrForm(
  ({ prefix, family }) =>
    prefix === bitsOf(family)
      ? undefined
      : 'must be one address (/32, or /128): a template such as "{{ node.labels.loopback }}/32" gives each node its own',
  '(32|128)',
);

/** The form of an address. */
export const ADDRESS: TextForm = {
  code: 'bad-address',
  problem: (text) =>
    parseAddress(text) === undefined ? 'must be an IP address such as 192.0.2.1 or 2001:db8::1' : undefined,
  schema: { pattern: '^[0-9A-Fa-f:.]+$' },
};

/** The form of the MAC address of one interface: not of a group, not all zeros. */
export const MAC: TextForm = patternForm(
  'bad-mac',
  /^(?!00:00:00:00:00:00$)[0-9A-Fa-f][02468ACEace](:[0-9A-Fa-f]{2}){5}$/,
  'must be the MAC address of one host, such as "02:00:00:00:00:01"',
);
