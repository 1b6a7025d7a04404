import type { Manifest } from '../../manifest.js';
import { manifestOf } from '../../manifest.fixture.js';

/** Specs with only what is required. */
const LEAST: Readonly<Record<string, object>> = {
  Mwan3Policy: { members: [{ network: 'wan1', metric: 1, weight: 1 }] },
  Mwan3Rule: { policy: 'balanced' },
  FirewallZone: { network: ['lan'] },
  FirewallRule: {},
  FirewallSNAT: { dest: 'outside', src_dip: '192.0.2.1' },
  FirewallDNAT: { src: 'outside' },
  FirewallForwarding: { src: 'inside', dest: 'outside' },
  IpsecProposal: { encryption_algorithm: 'aes256', hash_algorithm: 'sha256', dh_group: 'modp4096' },
  CNFNAT: { target: 'MASQUERADE', dest: 'eth0' },
  CNFRoute: { dst: 'default', dev: 'eth0' },
  CNFRouteRule: { src: '10.0.0.0/8' },
  NetworkFirewallRule: { src: 'eth0', target: 'DROP' },
  SdewanApplication: { iplist: ['10.0.0.1'] },
  CNFService: { fullname: 'db.example.com', port: 1, dport: 2 },
  CNFLocalService: { localservice: 'a', remoteservice: '10.0.0.1' },
  CNFHubSite: { type: 'Hub', subnet: '10.0.0.0/8', hubip: '10.0.0.1' },
};
export const CONNECTION = { name: 'lan', conn_type: 'tunnel', mode: 'start', local_subnet: '10.0.0.0/8' };
const PEER = { remote: 'any', authentication_method: 'psk', pre_shared_key: 'a', crypto_proposal: ['p'] };

export const object = (kind: string, spec: object, name = 'a1'): Manifest =>
  manifestOf(kind, { ...LEAST[kind], ...spec }, { name });
const site = (spec: object, connection: object = {}): Manifest =>
  object('IpsecSite', { ...PEER, connections: [{ ...CONNECTION, ...connection }], ...spec });
const nat = (spec: object): Manifest => manifestOf('CNFNAT', spec, { name: 'a1' });
const certificate = 'LS0tLS1CRUdJTg==';

/** Valid objects, by what they show. */
export const GOOD_OBJECTS: readonly (readonly [string, Manifest])[] = [
  ...Object.keys(LEAST).map((kind) => [`the shortest ${kind}`, object(kind, {})] as const),
  ['a number as the function writes it', object('Mwan3Rule', { dest_port: '443', timeout: '600' })],
  ['a rule with empty fields', object('Mwan3Rule', { src_ip: '', dest_port: '', proto: '', timeout: '' })],
  ['a port from a template', object('FirewallRule', { dest_port: '{{ node.labels.port }}' })],
  ['a rule that sets a mark', object('FirewallRule', { target: 'MARK', set_xmark: '0x10/0xff' })],
  [
    'a zone with everything but some addresses',
    object('FirewallZone', {
      masq: '1',
      masq_src: ['!10.0.0.0/8', '192.0.2.1'],
      subnet: ['10.0.0.0/8'],
      family: 'ipv4',
    }),
  ],
  ['a site with a key', site({})],
  [
    'a site with certificates',
    site({
      authentication_method: 'pubkey',
      local_public_cert: certificate,
      local_private_cert: certificate,
      shared_ca: `${certificate}___${certificate}`,
    }),
  ],
  [
    'a host',
    object('IpsecHost', {
      ...PEER,
      connections: [{ name: 'a_1', conn_type: 'transport', mode: 'add', local_sourceip: '%config' }],
    }),
  ],
  [
    'a route rule with everything',
    object('CNFRouteRule', { dst: '192.0.2.1', not: true, prio: 100, fwmark: '0x1f', table: 'main' }),
  ],
];

const resolved = (...addresses: readonly string[]): Manifest => ({
  ...manifestOf('ResolvedName', {}, { name: 'db.example.com' }),
  spec: { addresses },
});

/** Invalid objects: the field, and words of the message. */
export const BAD_OBJECTS: readonly (readonly [string, Manifest, string, string])[] = [
  [
    'a name with a dash',
    object('Mwan3Policy', {}, 'a-b'),
    'metadata.name',
    'the function loses an object with another name',
  ],
  ['a name with a dot', object('CNFRoute', {}, 'a.b'), 'metadata.name', 'a-z and 0-9'],
  ['a zone with a long name', object('FirewallZone', {}, 'abcdefghijkl'), 'metadata.name', 'at most 11'],
  ['a policy without members', object('Mwan3Policy', { members: [] }), 'spec.members', 'must not be empty'],
  [
    'a policy with one network twice',
    object('Mwan3Policy', {
      members: [
        { network: 'a', metric: 1, weight: 1 },
        { network: 'a', metric: 2, weight: 1 },
      ],
    }),
    'spec.members[1].network',
    'is the same as members[0].network',
  ],
  [
    'a weight of 0',
    object('Mwan3Policy', { members: [{ network: 'a', metric: 1, weight: 0 }] }),
    'spec.members[0].weight',
    'must be from 1 to 1000',
  ],
  ['port 0', object('Mwan3Rule', { dest_port: 0 }), 'spec.dest_port', 'must be from 1 to 65535'],
  ['port 65536', object('FirewallRule', { src_port: '65536' }), 'spec.src_port', 'must be from 1 to 65535'],
  ['a range of ports', object('FirewallRule', { src_port: '1-2' }), 'spec.src_port', 'must be a whole number'],
  ['an IPv6 address', object('Mwan3Rule', { src_ip: '2001:db8::1' }), 'spec.src_ip', 'knows only IPv4'],
  [
    'an address with family ipv6',
    object('FirewallRule', { family: 'ipv6', src_ip: '10.0.0.1' }),
    'spec.src_ip',
    'use family ipv4',
  ],
  [
    'ports of ICMP',
    object('Mwan3Rule', { proto: 'icmp', dest_port: 80 }),
    'spec.dest_port',
    'cannot be used with proto icmp: ICMP has no ports',
  ],
  ['half a port', object('Mwan3Rule', { dest_port: 1.5 }), 'spec.dest_port', 'must be a whole number, but is 1.5'],
  ['an unknown protocol', object('Mwan3Rule', { proto: 'tcpudp' }), 'spec.proto', 'must be one of tcp, udp, icmp, all'],
  ['all zones', object('FirewallRule', { src: '*' }), 'spec.src', 'one object per zone'],
  [
    'a mark with a command',
    object('FirewallRule', { mark: '1;reboot' }),
    'spec.mark',
    'the function passes it on to a shell',
  ],
  [
    'a set_mark with a command',
    object('NetworkFirewallRule', { target: 'MARK', set_mark: '$(reboot)' }),
    'spec.set_mark',
    'shell',
  ],
  ['MARK without a mark', object('FirewallRule', { target: 'MARK' }), 'spec', 'set_mark or set_xmark is required'],
  [
    'a SNAT without a new sender',
    manifestOf('FirewallSNAT', { dest: 'outside' }, { name: 'a' }),
    'spec.src_dip',
    'is required',
  ],
  [
    'a SNAT without a zone',
    manifestOf('FirewallSNAT', { src_dip: '192.0.2.1' }, { name: 'a' }),
    'spec.dest',
    'is required',
  ],
  ['a DNAT without a zone', manifestOf('FirewallDNAT', {}, { name: 'a' }), 'spec.src', 'is required'],
  [
    'a network as a new sender',
    object('FirewallSNAT', { src_dip: '10.0.0.0/8' }),
    'spec.src_dip',
    'without a prefix length',
  ],
  ['an unknown algorithm', object('IpsecProposal', { dh_group: 'modp1' }), 'spec.dh_group', 'must be one of modp768'],
  [
    'a key without a key',
    site({ pre_shared_key: undefined }),
    'spec.pre_shared_key',
    'authentication_method psk uses it',
  ],
  [
    'a missing authority',
    site({ authentication_method: 'pubkey', local_public_cert: certificate, local_private_cert: certificate }),
    'spec.shared_ca',
    'authentication_method pubkey uses it',
  ],
  ['a certificate that is not base64', site({ shared_ca: '-----BEGIN' }), 'spec.shared_ca', 'must be base64'],
  ['an invalid address', site({ remote: '300.1.1.1' }), 'spec.remote', 'must be an IPv4 address, a host name'],
  ['a long identity', site({ local_identifier: 'a'.repeat(256) }), 'spec.local_identifier', 'longer than 255'],
  ['a connection with a dash', site({}, { name: 'a-b' }), 'spec.connections[0].name', 'the function loses connections'],
  ['a connection twice', site({ connections: [CONNECTION, CONNECTION] }), 'spec.connections[1].name', 'is the same as'],
  [
    'a site without a network',
    site({ connections: [{ ...CONNECTION, local_subnet: undefined }] }),
    'spec.connections[0].local_subnet',
    'is required',
  ],
  ['a script with a command', site({}, { local_updown: '/bin/a;reboot' }), 'spec.connections[0].local_updown', 'shell'],
  ['a NAT for TCP and UDP', nat({ target: 'MASQUERADE', dest: 'a', proto: 'tcpudp' }), 'spec.proto', 'must be one of'],
  [
    'a NAT for a port of any protocol',
    nat({ target: 'MASQUERADE', dest: 'a', dest_port: 1 }),
    'spec.proto',
    'because dest_port is given',
  ],
  [
    'a NAT for a port of ICMP',
    nat({ target: 'MASQUERADE', dest: 'a', dest_port: 1, proto: 'icmp' }),
    'spec.proto',
    'the function reports success',
  ],
  ['a NAT without an interface', nat({ target: 'MASQUERADE' }), 'spec.dest', 'is required'],
  ['a NAT without a new sender', nat({ target: 'SNAT', dest: 'a' }), 'spec.src_dip', 'needs the new sender'],
  ['a NAT without a new receiver', nat({ target: 'DNAT' }), 'spec', 'dest_ip or dest_port is required'],
  ['a NAT to a network', nat({ target: 'DNAT', dest_ip: '10.0.0.0/8' }), 'spec.dest_ip', 'without a prefix length'],
  [
    'a NAT with a source in the wrong place',
    nat({ target: 'DNAT', dest_ip: '10.0.0.1', src: '#source' }),
    'spec.src',
    'would ignore the rest',
  ],
  [
    'a NAT with a source without a new sender',
    nat({ target: 'MASQUERADE', dest: '#source' }),
    'spec.dest',
    'only target SNAT',
  ],
  ['a route to a host in a network', object('CNFRoute', { dst: '10.0.0.1/8' }), 'spec.dst', 'did you mean 10.0.0.0/8?'],
  [
    'a device with a command',
    object('CNFRoute', { dev: 'eth0;reboot' }),
    'spec.dev',
    'must be the name of an interface',
  ],
  ['a router with a prefix length', object('CNFRoute', { gw: '10.0.0.1/8' }), 'spec.gw', 'without a prefix length'],
  ['a rule without an address', manifestOf('CNFRouteRule', {}, { name: 'a' }), 'spec', 'src or dst is required'],
  ['a long fwmark', object('CNFRouteRule', { fwmark: '0x123456789' }), 'spec.fwmark', '8 hexadecimal digits'],
  ['table 0', object('CNFRouteRule', { table: '0' }), 'spec.table', 'from 1'],
  ['ICMP without a type', object('NetworkFirewallRule', { proto: 'icmp' }), 'spec.icmp_type', 'use any for all types'],
  [
    'a port without a protocol',
    object('NetworkFirewallRule', { dest_port: 1 }),
    'spec.proto',
    'must be one of tcp, udp, tcpudp',
  ],
  ['an application without addresses', object('SdewanApplication', { iplist: [] }), 'spec.iplist', 'must not be empty'],
  [
    'an application with a network',
    object('SdewanApplication', { iplist: ['10.0.0.0/8'] }),
    'spec.iplist[0]',
    'without a prefix length',
  ],
  ['a host in capitals', object('CNFService', { fullname: 'DB.example.com' }), 'spec.fullname', 'in lower case'],
  [
    'a host with a dot at its end',
    object('CNFService', { fullname: 'db.example.com.' }),
    'spec.fullname',
    'without a dot',
  ],
  ['an IPv6 address as a host', object('CNFService', { fullname: '2001:db8::1' }), 'spec.fullname', 'knows only IPv4'],
  [
    'half an address as a host',
    object('CNFService', { fullname: '10.0.0' }),
    'spec.fullname',
    'must be a full host name',
  ],
  [
    'a host from a template',
    object('CNFService', { fullname: '{{ node.labels.db }}' }),
    'spec.fullname',
    'write one object per name',
  ],
  ['a service without a port', object('CNFService', { dport: undefined }), 'spec.dport', 'is required'],
  ['a long name of a service', object('CNFService', {}, 'a'.repeat(51)), 'metadata.name', 'at most 50'],
  ['a site without a network', object('CNFHubSite', { subnet: undefined }), 'spec', 'site or subnet is required'],
  ['a hub without a device', object('CNFHubSite', { hubip: undefined }), 'spec.hubip', 'type Hub needs the device'],
  ['a device without an address', object('CNFHubSite', { type: 'Device' }), 'spec.devicepip', 'needs its own address'],
  [
    'a device whose interface has no name',
    object('CNFHubSite', { hubip: '192.168.100.100' }),
    'spec.hubip',
    'names of interfaces have at most 15 characters',
  ],
  [
    'a subnet with bits of a host',
    object('CNFHubSite', { subnet: '10.0.0.1/8' }),
    'spec.subnet',
    'did you mean 10.0.0.0/8?',
  ],
  ['addresses in another order', resolved('10.0.0.10', '10.0.0.9'), 'spec.addresses', '10.0.0.9, 10.0.0.10'],
  ['an address twice', resolved('10.0.0.9', '10.0.0.9'), 'spec.addresses', 'each once: 10.0.0.9'],
  ['no address', resolved(), 'spec.addresses', 'must not be empty'],
  [
    'too many addresses',
    resolved(...Array.from({ length: 65 }, (_, i) => `10.0.0.${i}`)),
    'spec.addresses',
    'at most 64',
  ],
];
