import ipaddr from 'ipaddr.js';

/** A parsed address of a host or of a network. Equal addresses have equal texts, however they were written. */
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

/** Parses an address like inet_pton; undefined if that would refuse it. */
export function parseAddress(text: string): ParsedAddress | undefined {
  // ipaddr.js accepts octal and short forms, and zones. The tools of the node would not.
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return { family: 4, address: text };
  if (!IPV6_TEXT.test(text) || !ipaddr.IPv6.isValid(text)) return undefined;
  const tail = /:([^:]*\.[^:]*)$/.exec(text)?.[1];
  if (tail !== undefined && !ipaddr.IPv4.isValidFourPartDecimal(tail)) return undefined;
  return { family: 6, address: ipaddr.IPv6.parse(text).toRFC5952String() };
}

/** Parses `address/length`; undefined if it is invalid. */
export function parseCidr(text: string): ParsedCidr | undefined {
  const match = /^([^/]+)\/(0|[1-9][0-9]{0,2})$/.exec(text);
  const parsed = match?.[1] === undefined ? undefined : parseAddress(match[1]);
  const prefix = Number(match?.[2]);
  if (parsed === undefined || prefix > bitsOf(parsed.family)) return undefined;
  const kind = parsed.family === 4 ? ipaddr.IPv4 : ipaddr.IPv6;
  const first =
    parseAddress(kind.networkAddressFromCIDR(`${parsed.address}/${prefix}`).toString())?.address ?? parsed.address;
  return { ...parsed, prefix, network: `${first}/${prefix}`, isNetwork: first === parsed.address };
}

/** The network of an `address/length`, always in the same form. */
export const networkText = (cidr: string): string => parseCidr(cidr)?.network ?? cidr;
export const familyOf = (cidr: string): 4 | 6 => parseCidr(cidr)?.family ?? 4;

/** The length of an address of that family. */
export const bitsOf = (family: 4 | 6): number => (family === 4 ? 32 : 128);

/** Whether the address is the broadcast address of its network. */
export const isBroadcast = ({ family, address, prefix }: ParsedCidr): boolean =>
  family === 4 && prefix < 31 && ipaddr.IPv4.broadcastAddressFromCIDR(`${address}/${prefix}`).toString() === address;

const IPV6_TEXT = /^[0-9A-Fa-f:.]+$/;
