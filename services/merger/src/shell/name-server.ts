import { Resolver } from 'node:dns/promises';
import { MOST_ADDRESSES, sortedAddresses } from '#libs/manifests';

/** The addresses of a host name, sorted, or why there are none. */
export type NameAnswer =
  | { readonly ok: true; readonly addresses: readonly string[] }
  | { readonly ok: false; readonly reason: string };

const TIMEOUT_MS = 2_000;
const TRIES = 2;

/** Asks DNS servers for IPv4 addresses: these servers, or those of the machine. */
export class NameServer {
  private readonly resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });

  constructor(servers: readonly string[] | undefined) {
    if (servers !== undefined) this.resolver.setServers(servers);
  }

  async ask(name: string): Promise<NameAnswer> {
    try {
      const addresses = sortedAddresses(await this.resolver.resolve4(name));
      if (addresses.length === 0) return { ok: false, reason: NO_ADDRESS };
      return addresses.length <= MOST_ADDRESSES
        ? { ok: true, addresses }
        : { ok: false, reason: `it has ${addresses.length} addresses; the limit is ${MOST_ADDRESSES}` };
    } catch (error) {
      return { ok: false, reason: reasonOf(error) };
    }
  }

  /** Ends all questions without an answer. */
  cancel(): void {
    this.resolver.cancel();
  }
}

const NO_ADDRESS = 'it has no IPv4 address';

function reasonOf(error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException;
  switch (code) {
    case 'ENOTFOUND':
      return 'there is no such name';
    case 'ENODATA':
      return NO_ADDRESS;
    case 'ETIMEOUT':
    case 'ECONNREFUSED':
      return 'no DNS server answers';
    default:
      return code === '' ? message : `the DNS server answers ${code}`;
  }
}
