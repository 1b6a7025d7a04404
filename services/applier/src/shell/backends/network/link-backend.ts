import type { Link } from '#libs/manifests/lean';
import { ElementBackend, type ElementState } from './element-backend.js';
import { LINK_GROUP } from './tools.js';

/** A link as `ip -j -d link` shows it. */
interface LinkRow {
  readonly ifname: string;
  readonly group?: string;
  readonly master?: string;
  readonly mtu?: number;
  readonly address?: string;
  readonly flags?: readonly string[];
  readonly link?: string;
  readonly gso_max_segs?: number;
  readonly linkinfo?: {
    readonly info_kind?: string;
    readonly info_data?: Readonly<Record<string, unknown>>;
    readonly info_slave_data?: Readonly<Record<string, unknown>>;
  };
}

const VXLAN_PORT = 4789;

/** A link that Sluice creates: a VRF, a bridge, or a member of one. Properties that cannot change need a new link. */
export class LinkBackend extends ElementBackend<Link> {
  readonly kind = 'NetworkLink';

  protected async stateOf(link: Link, fresh: boolean): Promise<ElementState | undefined> {
    const row = await this.row(link.name, fresh);
    if (row === undefined) return undefined;
    const ours = row.group === LINK_GROUP;
    const isOther =
      row.linkinfo?.info_kind !== link.type &&
      [row.linkinfo?.info_kind, link.type].some((type) => type === 'vrf' || type === 'bridge');
    return {
      ours,
      isOther,
      differs: ours ? (otherKind(link, row) ?? otherSettings(link, row) ?? (await this.otherSysctls(link))) : undefined,
    };
  }

  protected async make(link: Link): Promise<void> {
    const { name } = link;
    let row = await this.row(name, true);
    if (row !== undefined && otherKind(link, row) !== undefined) {
      await this.remove(link);
      row = undefined;
    }
    if (row === undefined) {
      await this.tools.run(addWords(link));
      row = await this.row(name, true);
    }
    if (row === undefined) throw new Error(`${name} was created, but does not exist`);
    const words = setWords(link, row).flat();
    if (words.length > 0) await this.tools.run(['ip', 'link', 'set', 'dev', name, ...words]);
    const port = portWords(link);
    if (port.length > 0) await this.tools.run(['bridge', 'link', 'set', 'dev', name, ...port]);
    for (const [place, value] of Object.entries(link.settings ?? {}))
      await this.tools.run(['sysctl', '-q', '-w', `${settingPath(name, place)}=${value}`]);
  }

  protected async remove({ name }: Link): Promise<void> {
    await this.tools.remove(['ip', 'link', 'delete', 'dev', name]);
  }

  private async row(name: string, fresh: boolean): Promise<LinkRow | undefined> {
    const row = await this.tools.rows<LinkRow>(['-d', 'link', 'show'], fresh ? ['dev', name] : undefined);
    return row.find(({ ifname }) => ifname === name);
  }

  private async otherSysctls({ name, settings = {} }: Link): Promise<string | undefined> {
    for (const [place, value] of Object.entries(settings)) {
      const { code, out } = await this.tools.try(['sysctl', '-n', settingPath(name, place)]);
      if (code !== 0 || out.trim() !== value)
        return `${place} is ${code === 0 ? out.trim() : 'missing'} instead of ${value}`;
    }
    return undefined;
  }
}

/** Slashes, because names of links contain dots. */
const settingPath = (name: string, place: string): string => {
  const [family = '', setting = ''] = place.split('/');
  return `net/${family}/conf/${name}/${setting}`;
};

/** The differences that cannot be changed while the link exists. */
function otherKind(link: Link, { linkinfo, link: below }: LinkRow): string | undefined {
  const data = linkinfo?.info_data ?? {};
  const is = (what: string, current: unknown, desired: unknown): string | undefined =>
    current === desired ? undefined : `${what} ${String(current)} instead of ${String(desired)}`;
  const kind = is('is of type', linkinfo?.info_kind, link.type);
  if (kind !== undefined) return kind;
  switch (link.type) {
    case 'vrf':
      return is('table', Number(data['table']), link.table);
    case 'vxlan':
      return (
        is('VNI', data['id'], link.vni) ??
        is('tunnel from', data['local'] ?? data['local6'], link.local) ??
        is('port', data['port'], VXLAN_PORT)
      );
    case 'vlan':
      return is('VLAN', data['id'], link.vlan) ?? is('is on', below, link.parent);
    case 'veth':
      return is('has the peer', below, link.peer);
    case 'bridge':
    case 'dummy':
      return undefined;
  }
}

function otherSettings(link: Link, row: LinkRow): string | undefined {
  const [words] = setWords(link, row);
  if (words !== undefined) return `is not set to ${words.join(' ')}`;
  const port = row.linkinfo?.info_slave_data ?? {};
  if (link.neighSuppress !== undefined && port['neigh_suppress'] !== link.neighSuppress)
    return `neighbour suppression is ${String(port['neigh_suppress'])}`;
  if (link.learning !== undefined && port['learning'] !== link.learning)
    return `learning is ${String(port['learning'])}`;
  return undefined;
}

/** One call sets the name and the mark, so that a kill leaves no link without the mark. */
function addWords(link: Link): readonly string[] {
  const { name, type, table, vni, local, vlan, parent, peer } = link;
  const settings = setWords(link, {}).flat();
  const base = [
    'ip',
    'link',
    'add',
    ...(type === 'vlan' && parent !== undefined ? ['link', parent] : []),
    'name',
    name,
    'group',
    LINK_GROUP,
    ...settings,
    'type',
    type,
  ];
  switch (type) {
    case 'vrf':
      return [...base, 'table', String(table)];
    case 'vxlan':
      return [
        ...base,
        'id',
        String(vni),
        'dstport',
        String(VXLAN_PORT),
        'nolearning',
        ...(local === undefined ? [] : ['local', local]),
      ];
    case 'vlan':
      return [...base, 'id', String(vlan)];
    case 'veth':
      return [...base, 'peer', 'name', String(peer), 'group', LINK_GROUP];
    case 'bridge':
    case 'dummy':
      return base;
  }
}

/** What remains to be set, each with the arguments that set it. */
function setWords(link: Link, row: Partial<LinkRow>): readonly (readonly string[])[] {
  return [
    ...(link.mac !== undefined && row.address !== link.mac ? [['address', link.mac]] : []),
    ...(link.mtu !== undefined && row.mtu !== link.mtu ? [['mtu', String(link.mtu)]] : []),
    ...(row.master === link.master ? [] : [link.master === undefined ? ['nomaster'] : ['master', link.master]]),
    ...(link.gsoMaxSegs !== undefined && row.gso_max_segs !== link.gsoMaxSegs
      ? [['gso_max_segs', String(link.gsoMaxSegs)]]
      : []),
    ...(row.flags?.includes('UP') === true ? [] : [['up']]),
  ];
}

function portWords({ learning, neighSuppress }: Link): readonly string[] {
  return [
    ...(learning === undefined ? [] : ['learning', learning ? 'on' : 'off']),
    ...(neighSuppress === undefined ? [] : ['neigh_suppress', neighSuppress ? 'on' : 'off']),
  ];
}
