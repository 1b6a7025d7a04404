import { BlockList, isIP } from 'node:net';

/** In clouds, metadata services answer here, and give credentials to every process of the node. */
const LINK_LOCAL = ['169.254.0.0/16', 'fe80::/10'];

/**
 * The addresses that tcp and http probes may connect to: those in `allowed`, networks such as 10.0.0.0/8; if it is
 * empty, all but link-local ones. Names are checked by the addresses that they resolve to, for each connection.
 */
export class ProbeNetworks {
  private readonly networks: BlockList;
  private readonly isAllowList: boolean;

  constructor(allowed: readonly string[] = []) {
    this.isAllowList = allowed.length > 0;
    this.networks = networksOf(this.isAllowList ? allowed : LINK_LOCAL);
  }

  /** Why probes of this node may not connect to a host that is given as an IP address; undefined for a name. */
  refusal(host: string): string | undefined {
    const address = host.replace(/%.*$/, '');
    const family = isIP(address);
    if (family === 0 || this.networks.check(address, family === 4 ? 'ipv4' : 'ipv6') === this.isAllowList)
      return undefined;
    return this.isAllowList
      ? `probes of this node may not connect to ${host}: it is in no network listed with --probe-network`
      : `probes may not connect to ${host}, a link-local address; to allow it on this node, list the networks that ` +
          'probes may reach with --probe-network';
  }
}

function networksOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const parsed = parseNetwork(network);
    if (parsed === undefined) throw new TypeError(`${network} is not a network`);
    list.addSubnet(parsed.address, parsed.prefix, parsed.family);
  }
  return list;
}

/** `10.0.0.0/8` or `2001:db8::/32`; a single address is a network of one. Undefined if it is neither. */
export function parseNetwork(
  text: string,
): { readonly address: string; readonly prefix: number; readonly family: 'ipv4' | 'ipv6' } | undefined {
  const [, address = '', length] = /^([0-9A-Fa-f.:]+)(?:\/([0-9]{1,3}))?$/.exec(text) ?? [];
  const family = isIP(address);
  const bits = family === 4 ? 32 : 128;
  const prefix = length === undefined ? bits : Number(length);
  return family === 0 || prefix > bits ? undefined : { address, prefix, family: family === 4 ? 'ipv4' : 'ipv6' };
}
