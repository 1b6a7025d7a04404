import { FILTER, FILTER_TARGETS, ip, MARK_RULES, noIpv6, port, protocol } from './fields.js';
import type { Field, FieldRule, FunctionKind } from './function-kind.js';

const AT_ONCE = { post: 'doubles' } as const;
const PORT_PROTOCOLS = ['tcp', 'udp', 'udplite', 'sctp'];
const device = (about: string): Field => ({
  form: 'device',
  needs: 'interface',
  about: `${about} An interface of the function, \`#default\` for that of the default route, or \`#\` and an address for the one with this address.`,
});
const portsNeed = (is: readonly string[], ...fields: readonly string[]): readonly FieldRule[] =>
  fields.map((field) => ({
    rule: 'needs-word',
    when: { field },
    field: 'proto',
    is,
    why: 'iptables rejects or ignores ports without such a protocol, and the function reports success',
  }));
const noMask = (target: string, field: string): FieldRule => ({
  rule: 'no-mask',
  when: { field: 'target', is: [target] },
  field,
  why: `${target} translates to a single address`,
});

/** What the function passes on to iptables and ip at once. It never checks whether they succeed. */
export const KERNEL_KINDS: readonly FunctionKind[] = [
  {
    ...AT_ONCE,
    kind: 'CNFNAT',
    mayCutOff: true,
    about: 'Traffic of a network function whose sender or receiver is replaced, by iptables and without zones.',
    path: 'nat/v1/nats',
    collection: 'nats',
    space: 'nat',
    fields: {
      src: {
        form: 'natTarget',
        needs: 'interface',
        about: 'Interface on which the traffic arrives, or `#default` for that of the default route.',
      },
      src_ip: ip('Sender.'),
      src_dip: ip('With `SNAT`: the new sender. With `DNAT`: the receiver before the translation.'),
      src_port: port('Port of the sender.'),
      src_dport: port('With `SNAT`: the new port of the sender. With `DNAT`: the port before the translation.'),
      proto: protocol(['tcp', 'udp', 'udplite', 'icmp', 'esp', 'ah', 'sctp', 'all']),
      dest: {
        form: 'natTarget',
        needs: 'interface',
        about:
          'Interface on which the traffic leaves, `#default` for that of the default route, or with `SNAT` `#source` for the one that has the address `src_dip`.',
      },
      dest_ip: ip('With `DNAT`: the new receiver. Otherwise: the receiver.'),
      dest_port: port('With `DNAT`: the new port of the receiver. Otherwise: the port of the receiver.'),
      target: { words: ['DNAT', 'SNAT', 'MASQUERADE'], required: true, about: 'What is replaced.' },
      index: {
        least: 0,
        most: 65_535,
        about: 'Position in the chain, from 1. Default: at the end. Taken when the object is created.',
      },
    },
    rules: [
      {
        rule: 'needs',
        when: { field: 'target', is: ['SNAT'] },
        oneOf: ['src_dip'],
        why: 'target SNAT needs the new sender',
      },
      {
        rule: 'needs',
        when: { field: 'target', is: ['SNAT', 'MASQUERADE'] },
        oneOf: ['dest'],
        why: 'this target needs the interface on which the traffic leaves',
      },
      {
        rule: 'needs',
        when: { field: 'target', is: ['DNAT'] },
        oneOf: ['dest_ip', 'dest_port'],
        why: 'target DNAT needs the new receiver',
      },
      {
        rule: 'only-when',
        field: 'dest',
        is: '#source',
        when: { field: 'target', is: ['SNAT'] },
        why: 'only target SNAT has a new sender',
      },
      {
        rule: 'only-when',
        field: 'src',
        is: '#source',
        when: { field: 'target', is: [] },
        why: 'the shell of the function would ignore the rest of its command: use the name of an interface, or #default',
      },
      ...portsNeed(PORT_PROTOCOLS, 'src_port', 'src_dport', 'dest_port'),
      noMask('SNAT', 'src_dip'),
      noMask('DNAT', 'dest_ip'),
    ],
  },
  {
    ...AT_ONCE,
    kind: 'CNFRoute',
    mayCutOff: true,
    about: 'A route of a network function.',
    path: 'route/v1/routes',
    collection: 'routes',
    space: 'route',
    fields: {
      dst: {
        form: 'routeTarget',
        required: true,
        about: 'IPv4 network or address, or `default`.',
      },
      gw: { form: 'address', about: 'IPv4 address of the next router.' },
      dev: { ...device('Interface on which the traffic leaves.'), required: true },
      table: { words: ['default', 'cnf'], about: 'The routing table: the main one, or 40. Default: `default`.' },
      src: { form: 'address', about: 'Own IPv4 address that the function uses on this route.' },
    },
  },
  {
    ...AT_ONCE,
    kind: 'CNFRouteRule',
    mayCutOff: true,
    about: 'Which traffic of a network function uses which routing table.',
    path: 'rule/v1/rules',
    collection: 'rules',
    space: 'route rule',
    fields: {
      src: ip('Sender.'),
      dst: ip('Receiver.'),
      not: {
        flag: true,
        wire: 'flag',
        otherwise: false,
        about: 'Whether it is for all other traffic. Default: false.',
      },
      prio: { least: 1, most: 32_765, about: 'Priority; lower numbers come first. Default: before all others.' },
      fwmark: { form: 'fwmark', about: 'Mark of the traffic, in hexadecimal digits.' },
      table: { form: 'table', about: '`main`, `local`, `default`, or the number of a table. Default: `main`.' },
    },
    rules: [{ rule: 'needs', oneOf: ['src', 'dst'], why: 'without an address, it would be for all traffic' }],
  },
  {
    ...AT_ONCE,
    kind: 'NetworkFirewallRule',
    mayCutOff: true,
    about: 'Traffic that a network function accepts, rejects, drops or marks, by iptables and without zones.',
    path: 'networkfirewall/v1/rules',
    collection: 'rules',
    space: 'networkfirewall rule',
    fields: {
      src: { ...device('Interface on which the traffic arrives.'), required: true },
      dest: device('Interface on which the traffic leaves. Default: the function itself.'),
      ...FILTER,
      target: { words: FILTER_TARGETS, required: true, about: 'What happens to the traffic.' },
    },
    rules: [
      ...MARK_RULES,
      noIpv6('src_ip', 'dest_ip'),
      ...portsNeed(['tcp', 'udp', 'tcpudp'], 'src_port', 'dest_port'),
      {
        rule: 'needs',
        when: { field: 'proto', is: ['icmp'] },
        oneOf: ['icmp_type'],
        why: 'the function ends with an error without it: use any for all types',
      },
    ],
  },
  {
    kind: 'SdewanApplication',
    about: 'Senders whose traffic through a network function uses routing table 40.',
    path: 'application/v1/applications',
    collection: 'applications',
    post: 'conflicts',
    space: 'application',
    fields: {
      iplist: { form: 'address', list: true, required: true, isJoined: true, about: 'IPv4 addresses of the senders.' },
    },
  },
];
