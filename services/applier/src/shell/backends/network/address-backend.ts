import { parseAddress, parseCidr, type LinkAddress } from '#libs/manifests/lean';
import { ElementBackend, type ElementState } from './element-backend.js';
import { LINK_GROUP } from './tools.js';

interface AddressRow {
  readonly ifname?: string;
  readonly group?: string;
  readonly addr_info?: readonly { readonly local?: string; readonly prefixlen?: number }[];
}

/** An address on a link that Sluice made. Several nodes may have it, so there is no check for duplicates. */
export class AddressBackend extends ElementBackend<LinkAddress> {
  readonly kind = 'NetworkAddress';

  protected async stateOf({ link, address }: LinkAddress, fresh: boolean): Promise<ElementState | undefined> {
    const all = await this.tools.rows<AddressRow>(['address', 'show'], fresh ? ['dev', link] : undefined);
    const row = all.find(({ ifname }) => ifname === link);
    const desired = parseCidr(address);
    const isThere = row?.addr_info?.some(
      ({ local = '', prefixlen }) => parseAddress(local)?.address === desired?.address && prefixlen === desired?.prefix,
    );
    // A link with that name that is not Sluice's stays unchanged, and so do its addresses.
    return isThere === true ? { ours: row?.group === LINK_GROUP, differs: undefined } : undefined;
  }

  protected async make({ link, address }: LinkAddress): Promise<void> {
    const [row] = await this.tools.rows<AddressRow>(['address', 'show'], ['dev', link]);
    if (row?.group !== LINK_GROUP) throw new Error(`${link} is not an interface that Sluice created`);
    await this.tools.run([
      'ip',
      'address',
      'replace',
      address,
      'dev',
      link,
      ...(parseCidr(address)?.family === 6 ? ['nodad'] : []),
    ]);
  }

  protected async remove({ link, address }: LinkAddress): Promise<void> {
    await this.tools.remove(['ip', 'address', 'delete', address, 'dev', link]);
  }
}
