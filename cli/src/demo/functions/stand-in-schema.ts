/** What the stand-in knows of each collection. It was written from the facts about the function, not from Sluice. */

export type Value = unknown;
export type Section = { readonly id: string; readonly type: string; options: Record<string, Value> };
export type Checker = (value: Value, world: World) => true | string;

/** What a validator may look at. */
export interface World {
  sections(config: string): readonly Section[];
  readonly networks: readonly string[];
  readonly interfaces: readonly string[];
  /** The interfaces that have these addresses. */
  readonly addresses: Readonly<Record<string, string>>;
}

export interface Member {
  readonly name: string;
  readonly check?: Checker;
  /** The code of a refusal, if it is not 400. */
  readonly code?: number;
  /** Each item is checked, or has these fields. */
  readonly items?: Checker | readonly Member[];
  readonly message?: string;
  readonly otherwise?: string;
}

export interface Collection {
  readonly config: string;
  readonly type: string;
  /** The name of one object in messages. */
  readonly singular: string;
  readonly isNamed: boolean;
  readonly members: readonly Member[];
  readonly whole?: (object: Readonly<Record<string, Value>>, world: World) => true | string;
  /** Where its objects may be in use, as type and options of sections in the same config. */
  readonly usedIn?: readonly (readonly [type: string, ...options: string[]])[];
  /** Its objects become rules of the kernel at once. */
  readonly isKernel?: true;
}

const text = (value: Value): value is string => typeof value === 'string';
const whole =
  (more: number): Checker =>
  (value) =>
    (text(value) && /^-?\d+$/.test(value) && Number(value) > more) || '';
const word =
  (...words: readonly string[]): Checker =>
  (value) =>
    (text(value) && words.includes(value)) || '';
const isIp = (value: Value): boolean => {
  const [address = '', mask, ...rest] = String(value).split('/');
  return isAddress(address) && rest.length === 0 && (mask === undefined || (/^\d+$/.test(mask) && Number(mask) <= 32));
};
const isAddress = (value: Value): boolean =>
  text(value) && /^\d{1,3}([.]\d{1,3}){3}$/.test(value) && value.split('.').every((octet) => Number(octet) <= 255);
const ip: Checker = (value) => (text(value) && isIp(value)) || '';
const address: Checker = (value) => isAddress(value) || '';
const section =
  (config: string, what: string, type?: string): Checker =>
  (value, world) =>
    world
      .sections(config)
      .some(
        (one) =>
          (one.id === value || (type === 'zone' && one.options['name'] === value)) &&
          (type === undefined || one.type === type),
      ) || `${what}[${String(value)}] is not definied`;
const network: Checker = (value, world) =>
  world.networks.includes(String(value)) || `Interface[${String(value)}] is not definied`;
const device: Checker = (value, world) => {
  const name = String(value);
  if (name === '#default') return true;
  return name.startsWith('#') ? name.slice(1) in world.addresses || '' : world.interfaces.includes(name) || '';
};
const natDevice: Checker = (value, world) =>
  value === '#default' || value === '#source' || world.interfaces.includes(String(value)) || '';

const PROTOCOL = word('tcp', 'udp', 'tcpudp', 'udplite', 'icmp', 'esp', 'ah', 'sctp', 'all');
const FAMILY = word('ipv4', 'ipv6', 'any');
const POLICY = word('ACCEPT', 'REJECT', 'DROP');
const BIT = word('0', '1');
const zone = section('firewall', 'Zone', 'zone');
const proposal = section('ipsec', 'Proposal', 'proposal');

const list = (...members: readonly (readonly [string, Checker?])[]): readonly Member[] =>
  members.map(([name, check]) => ({ name, message: `invalid ${name}`, ...(check === undefined ? {} : { check }) }));

const FILTER = list(
  ['src_ip', ip],
  ['src_mac'],
  ['src_port', whole(0)],
  ['proto', PROTOCOL],
  ['dest_ip', ip],
  ['dest_port', whole(0)],
  ['mark'],
  ['target', word('ACCEPT', 'REJECT', 'DROP', 'MARK', 'NOTRACK')],
  ['set_mark'],
  ['set_xmark'],
  ['family', FAMILY],
  ['extra'],
);
const ICMP: Member = { name: 'icmp_type', items: (value) => text(value) || '', message: 'invalid icmp_type' };
const marks = (object: Readonly<Record<string, Value>>): true | string =>
  object['target'] !== 'MARK' ||
  object['set_mark'] !== undefined ||
  object['set_xmark'] !== undefined ||
  'set_mark or set_xmark is required for MARK';
const redirects = ({ target, src_dip, dest, src }: Readonly<Record<string, Value>>): true | string => {
  if (target === 'SNAT' && src_dip === undefined) return 'src_dip is required for SNAT';
  if (target === 'SNAT' && dest === undefined) return 'dest is required for SNAT';
  return target !== 'DNAT' || src !== undefined || 'src is required for DNAT';
};
const nats = (
  { target, src_dip, dest, dest_ip, dest_port }: Readonly<Record<string, Value>>,
  world: World,
): true | string => {
  if (target === 'SNAT' && src_dip === undefined) return 'src_dip is required for SNAT';
  if ((target === 'SNAT' || target === 'MASQUERADE') && dest === undefined) return `dest is required for ${target}`;
  if (target === 'SNAT' && dest === '#source' && !(String(src_dip) in world.addresses))
    return '428:ip not found on all interfaces';
  return (
    target !== 'DNAT' ||
    dest_ip !== undefined ||
    dest_port !== undefined ||
    'dest_ip or dest_port are required for DNAT'
  );
};
const secrets = (object: Readonly<Record<string, Value>>): true | string => {
  const method = object['authentication_method'];
  const needed = method === 'psk' ? ['pre_shared_key'] : ['local_public_cert', 'local_private_cert', 'shared_ca'];
  if (method !== 'psk' && method !== 'pubkey') return 'Invalid authentication method';
  return (
    needed.every((key) => object[key] !== undefined) ||
    `Secret does not exists for the authentication method: ${method}`
  );
};
const devices =
  (...keys: readonly string[]) =>
  (object: Readonly<Record<string, Value>>, world: World): true | string =>
    keys
      .map((key) =>
        object[key] === undefined || device(object[key], world) === true
          ? undefined
          : `428:Field[${key}] checked failed: Invalid interface`,
      )
      .find((found) => found !== undefined) ?? true;

const PROPOSALS: Member = { name: 'crypto_proposal', items: proposal, message: 'invalid crypto_proposal', code: 428 };
export const CERTIFICATES: readonly string[] = ['local_public_cert', 'local_private_cert', 'shared_ca'];

/** By path below `sdewan/`. */
export const COLLECTIONS: Readonly<Record<string, Collection>> = {
  'mwan3/v1/policies': {
    config: 'mwan3',
    type: 'policy',
    singular: 'policy',
    isNamed: true,
    usedIn: [['rule', 'policy']],
    members: [
      {
        name: 'members',
        message: 'Incorrect policy member',
        items: [
          { name: 'interface', check: section('mwan3', 'Interface'), message: 'invalid interface' },
          { name: 'metric', check: whole(0), message: 'metric should be greater than 0' },
          { name: 'weight', check: whole(0), message: 'weight should be greater than 0' },
        ],
      },
    ],
  },
  'mwan3/v1/rules': {
    config: 'mwan3',
    type: 'rule',
    singular: 'rule',
    isNamed: true,
    members: list(
      ['policy', section('mwan3', 'Policy')],
      ['src_ip', ip],
      ['src_port', whole(0)],
      ['dest_ip', ip],
      ['dest_port', whole(0)],
      ['proto', word('tcp', 'udp', 'icmp', 'all')],
      ['family', word('ipv4', 'ipv6', 'all')],
      ['sticky', BIT],
      ['timeout', whole(0)],
    ),
  },
  'firewall/v1/zones': {
    config: 'firewall',
    type: 'zone',
    singular: 'zone',
    isNamed: false,
    usedIn: [
      ['rule', 'src', 'dest'],
      ['forwarding', 'src', 'dest'],
      ['redirect', 'src', 'dest'],
    ],
    members: [
      {
        name: 'name',
        check: (value) => String(value).length <= 11 || 'The name has more than 11 characters',
        message: 'invalid zone name',
      },
      { name: 'network', items: network, message: 'invalid network' },
      { name: 'masq_src', items: (value) => isIp(String(value).replace(/^!/, '')) || '', message: 'invalid masq_src' },
      {
        name: 'masq_dest',
        items: (value) => isIp(String(value).replace(/^!/, '')) || '',
        message: 'invalid masq_dest',
      },
      { name: 'subnet', items: ip, message: 'invalid subnet' },
      ...list(
        ['masq', BIT],
        ['masq_allow_invalid', BIT],
        ['mtu_fix', BIT],
        ['input', POLICY],
        ['forward', POLICY],
        ['output', POLICY],
        ['family', FAMILY],
        ['extra_src'],
        ['etra_dest'],
      ),
    ],
  },
  'firewall/v1/rules': {
    config: 'firewall',
    type: 'rule',
    singular: 'rule',
    isNamed: false,
    whole: marks,
    members: [...list(['src', zone], ['dest', zone]), ...FILTER, ICMP],
  },
  'firewall/v1/redirects': {
    config: 'firewall',
    type: 'redirect',
    singular: 'redirect',
    isNamed: false,
    whole: redirects,
    members: list(
      ['src', zone],
      ['src_ip', ip],
      ['src_dip', ip],
      ['src_mac'],
      ['src_port', whole(0)],
      ['src_dport', whole(0)],
      ['proto', PROTOCOL],
      ['dest', zone],
      ['dest_ip', ip],
      ['dest_port', whole(0)],
      ['mark'],
      ['target', word('DNAT', 'SNAT')],
      ['family', FAMILY],
    ),
  },
  'firewall/v1/forwardings': {
    config: 'firewall',
    type: 'forwarding',
    singular: 'forwarding',
    isNamed: false,
    members: list(['src', zone], ['dest', zone], ['family', FAMILY]),
  },
  'ipsec/v1/proposals': {
    config: 'ipsec',
    type: 'proposal',
    singular: 'proposal',
    isNamed: true,
    usedIn: [
      ['remote', 'crypto_proposal'],
      ['tunnel', 'crypto_proposal'],
      ['transport', 'crypto_proposal'],
    ],
    members: list(
      ['encryption_algorithm', (value) => /^[a-z0-9]+$/.test(String(value)) || ''],
      ['hash_algorithm', (value) => /^[a-z0-9_]+$/.test(String(value)) || ''],
      ['dh_group', (value) => /^[a-z0-9]+$/.test(String(value)) || ''],
    ),
  },
  'ipsec/v1/remotes': {
    config: 'ipsec',
    type: 'remote',
    singular: 'remote',
    isNamed: true,
    whole: secrets,
    members: [
      ...list(
        ['type'],
        ['gateway'],
        ['authentication_method', word('psk', 'pubkey')],
        ['pre_shared_key'],
        ['local_identifier'],
        ['remote_identifier'],
        ['force_crypto_proposal', BIT],
      ),
      { name: 'enabled', otherwise: '1' },
      PROPOSALS,
      ...CERTIFICATES.map((name) => ({ name })),
      {
        name: 'connections',
        message: 'invalid connection',
        items: [
          ...list(
            ['name'],
            ['conn_type', word('tunnel', 'transport')],
            ['mode', word('start', 'add', 'route')],
            ['local_subnet'],
            ['local_sourceip'],
            ['local_updown'],
            ['local_firewall', word('yes', 'no')],
            ['remote_subnet'],
            ['remote_sourceip'],
            ['remote_updown'],
            ['remote_firewall', word('yes', 'no')],
            ['mark'],
          ),
          PROPOSALS,
        ],
      },
    ],
  },
  'nat/v1/nats': {
    config: 'firewall-nat',
    type: 'nat',
    singular: 'nat',
    isNamed: false,
    isKernel: true,
    whole: nats,
    members: [
      { name: 'src', check: natDevice, message: 'invalid src', code: 428 },
      { name: 'dest', check: natDevice, message: 'invalid dest', code: 428 },
      ...list(
        ['src_ip', ip],
        ['src_dip', ip],
        ['src_port', whole(0)],
        ['src_dport', whole(0)],
        ['proto', PROTOCOL],
        ['dest_ip', ip],
        ['dest_port', whole(0)],
        ['target', word('DNAT', 'SNAT', 'MASQUERADE')],
        ['index', whole(-1)],
      ),
    ],
  },
  'route/v1/routes': {
    config: 'route-cnf',
    type: 'route',
    singular: 'route',
    isNamed: false,
    isKernel: true,
    whole: devices('dev'),
    members: list(
      ['dst', (value) => value === 'default' || isIp(value) || ''],
      ['src', address],
      ['gw', address],
      ['dev'],
      ['table', word('default', 'cnf')],
    ),
  },
  'rule/v1/rules': {
    config: 'rule-cnf',
    type: 'rule',
    singular: 'rule',
    isNamed: false,
    isKernel: true,
    members: [
      ...list(
        ['src', ip],
        ['dst', ip],
        ['prio', whole(0)],
        ['fwmark', (value) => (/^(0x)?[0-9a-f]+$/i.test(String(value)) && String(value).length <= 10) || ''],
        [
          'table',
          (value) => ['main', 'local', 'default'].includes(String(value)) || (text(value) && Number(value) > 0) || '',
        ],
      ),
      { name: 'flag', check: (value) => typeof value === 'boolean' || '' },
    ],
  },
  'networkfirewall/v1/rules': {
    config: 'firewall-rule',
    type: 'rule',
    singular: 'rule',
    isNamed: false,
    isKernel: true,
    whole: (object, world) => {
      const marked = marks(object);
      return marked === true ? devices('src', 'dest')(object, world) : marked;
    },
    members: [...list(['src'], ['dest']), ...FILTER, ICMP],
  },
  'application/v1/applications': {
    config: 'app-cnf',
    type: 'rule',
    singular: 'application',
    isNamed: true,
    isKernel: true,
    members: list(['iplist', (value) => (text(value) && value.split(',').every((one) => isAddress(one.trim()))) || '']),
  },
};
