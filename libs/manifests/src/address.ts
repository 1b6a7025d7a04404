import ipaddr from 'ipaddr.js';
import { patternForm, type TextForm } from './shape/forms.js';

/** An address of a host or of a network, read. Equal addresses have equal texts, however they were written. */
export interface ParsedAddress {
  readonly family: 4 | 6;
  /** RFC 5952 for IPv6. */
  readonly address: string;
}

/** An address with the length of its network. */
export interface ParsedCidr extends ParsedAddress {
  readonly prefix: number;
  /** The address of the network, as text with its length. */
  readonly network: string;
  /** Whether the address is the one of the network itself. */
  readonly isNetwork: boolean;
}

/** Reads an address as inet_pton does; undefined where that would refuse it. */
export function parseAddress(text: string): ParsedAddress | undefined {
  // ipaddr.js takes octal and short forms, and zones: on the node nobody would.
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return { family: 4, address: text };
  if (!IPV6_TEXT.test(text) || !ipaddr.IPv6.isValid(text)) return undefined;
  const tail = /:([^:]*\.[^:]*)$/.exec(text)?.[1];
  if (tail !== undefined && !ipaddr.IPv4.isValidFourPartDecimal(tail)) return undefined;
  return { family: 6, address: ipaddr.IPv6.parse(text).toRFC5952String() };
}

/** Reads `address/length`; undefined where that is none. */
export function parseCidr(text: string): ParsedCidr | undefined {
  const match = /^([^/]+)\/(0|[1-9][0-9]{0,2})$/.exec(text);
  const parsed = match?.[1] === undefined ? undefined : parseAddress(match[1]);
  const prefix = Number(match?.[2]);
  if (parsed === undefined || prefix > bitsOf(parsed.family)) return undefined;
  const kind = parsed.family === 4 ? ipaddr.IPv4 : ipaddr.IPv6;
  const first = parseAddress(kind.networkAddressFromCIDR(`${parsed.address}/${prefix}`).toString())?.address ?? parsed.address;
  return { ...parsed, prefix, network: `${first}/${prefix}`, isNetwork: first === parsed.address };
}

/** Length of an address of that family. */
export const bitsOf = (family: 4 | 6): number => (family === 4 ? 32 : 128);

/** The form of a network: the address before the slash is that of the network. */
export const NETWORK: TextForm = {
  code: 'bad-cidr',
  problem: (text) => {
    const cidr = parseCidr(text);
    if (cidr === undefined) return CIDR_MESSAGE;
    return cidr.isNetwork ? undefined : `must be the address of the network: ${cidr.network} is meant, perhaps`;
  },
  schema: { pattern: '^[0-9A-Fa-f:.]+/[0-9]{1,3}$' },
};

/** The form of a host's address together with the length of its network. */
export const HOST_IN_NETWORK: TextForm = {
  code: 'bad-cidr',
  problem: (text) => {
    const cidr = parseCidr(text);
    if (cidr === undefined) return CIDR_MESSAGE;
    if (cidr.prefix >= bitsOf(cidr.family) - 1) return undefined;
    if (cidr.isNetwork) return 'must be the address of a host, and is that of its network';
    return isBroadcast(cidr) ? 'must be the address of a host, and is the broadcast of its network' : undefined;
  },
  schema: { pattern: '^[0-9A-Fa-f:.]+/[0-9]{1,3}$' },
};

/** The form of one address written as a network. */
export const ONE_ADDRESS: TextForm = {
  code: 'bad-cidr',
  problem: (text) => {
    const cidr = parseCidr(text);
    if (cidr === undefined) return CIDR_MESSAGE;
    return cidr.prefix === bitsOf(cidr.family) ? undefined : 'must be one address (/32, or /128): a template such as "{{ node.labels.loopback }}/32" gives each node its own';
  },
  schema: { pattern: '^[0-9A-Fa-f:.]+/(32|128)$' },
};

/** The form of an address. */
export const ADDRESS: TextForm = {
  code: 'bad-address',
  problem: (text) => (parseAddress(text) === undefined ? 'must be an IP address such as 192.0.2.1 or 2001:db8::1' : undefined),
  schema: { pattern: '^[0-9A-Fa-f:.]+$' },
};

/** The form of the MAC address of one interface: not of a group, not all zeros. */
export const MAC: TextForm = patternForm('bad-mac', /^(?!00:00:00:00:00:00$)[0-9A-Fa-f][02468ACEace](:[0-9A-Fa-f]{2}){5}$/,
  'must be the MAC address of one host, such as "02:00:00:00:00:01"');

const CIDR_MESSAGE = 'must be a network such as 10.0.0.0/8 or 2001:db8::/32';
const IPV6_TEXT = /^[0-9A-Fa-f:.]+$/;

const isBroadcast = ({ family, address, prefix }: ParsedCidr): boolean =>
  family === 4 && ipaddr.IPv4.broadcastAddressFromCIDR(`${address}/${prefix}`).toString() === address;
