import type { Field, FieldRule, Fields } from './function-kind.js';

/** Fields that several kinds have. */
const IP = 'An IPv4 address, or a network such as `10.0.0.0/8`.';
export const PROTOCOLS = ['tcp', 'udp', 'tcpudp', 'udplite', 'icmp', 'esp', 'ah', 'sctp', 'all'] as const;
const ICMP_TYPES = [
  'address-mask-reply',
  'any',
  'communication-prohibited',
  'destination-unreachable',
  'echo-reply',
  'echo-request',
  'fragmentation-needed',
  'host-precedence-violation',
  'host-prohibited',
  'host-redirect',
  'host-unknown',
  'host-unreachable',
  'ip-header-bad',
  'network-prohibited',
  'network-redirect',
  'network-unknown',
  'network-unreachable',
  'parameter-problem',
  'ping',
  'pong',
  'port-unreachable',
  'precedence-cutoff',
  'protocol-unreachable',
  'redirect',
  'required-option-missing',
  'router-advertisement',
  'router-solicitation',
  'source-quench',
  'source-route-failed',
  'time-exceeded',
  'timestamp-reply',
  'timestamp-request',
  'TOS-host-redirect',
  'TOS-host-unreachable',
  'TOS-network-redirect',
  'TOS-network-unreachable',
  'ttl-exceeded',
  'ttl-zero-during-reassembly',
  'ttl-zero-during-transit',
] as const;

export const ip = (about: string): Field => ({ form: 'ip', about: `${about} ${IP}` });
export const port = (about: string): Field => ({ least: 1, most: 65_535, about });
export const bit = (about: string): Field => ({ words: ['0', '1'], about });
export const protocol = (words: readonly string[] = PROTOCOLS): Field => ({ words, about: 'The protocol.' });
export const zone = (about: string): Field => ({ form: 'zone', refersTo: 'FirewallZone', about });

export const FAMILY: Field = {
  words: ['ipv4', 'ipv6', 'any'],
  about: 'The IP version. With `ipv6`, no address can be given, because the function knows only IPv4.',
};
export const MAC: Field = { form: 'mac', about: 'The MAC address of the sender.' };
export const MARK: Field = {
  form: 'mark',
  about: 'The firewall mark that a packet has: a number, or a number and a mask as in `0x10/0xff`.',
};

/** The fields of rules that filter packets. */
export const FILTER: Fields = {
  src_ip: ip('Sender.'),
  src_mac: MAC,
  src_port: port('Port of the sender.'),
  dest_ip: ip('Receiver.'),
  dest_port: port('Port of the receiver.'),
  proto: protocol(),
  icmp_type: { words: ICMP_TYPES, list: true, about: 'Types of ICMP messages, as iptables names them.' },
  mark: MARK,
  set_mark: { form: 'mark', about: 'For `MARK`: the mark to set.' },
  set_xmark: { form: 'mark', about: 'For `MARK`: the mark to combine with the present one (XOR).' },
  family: FAMILY,
  extra: { form: 'extra', about: 'More arguments for iptables.' },
};
export const FILTER_TARGETS = ['ACCEPT', 'REJECT', 'DROP', 'MARK', 'NOTRACK'] as const;

export const MARK_RULES: readonly FieldRule[] = [
  {
    rule: 'needs',
    when: { field: 'target', is: ['MARK'] },
    oneOf: ['set_mark', 'set_xmark'],
    why: 'target MARK sets a mark',
  },
];
export const noIpv6 = (...fields: readonly string[]): FieldRule => ({
  rule: 'forbids',
  when: { field: 'family', is: ['ipv6'] },
  fields,
  why: 'the function takes IPv4 addresses only, which no IPv6 packet has: leave out the address, or use family ipv4',
});
