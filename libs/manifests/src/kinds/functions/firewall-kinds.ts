import {
  bit,
  FAMILY,
  FILTER,
  FILTER_TARGETS,
  ip,
  MAC,
  MARK,
  MARK_RULES,
  noIpv6,
  port,
  protocol,
  zone,
} from './fields.js';
import type { Field, Fields, FunctionKind } from './function-kind.js';

const FIREWALL = { post: 'doubles', after: { service: 'firewall', action: 'reload' } } as const;
const REDIRECTS = {
  ...FIREWALL,
  path: 'firewall/v1/redirects',
  collection: 'redirects',
  space: 'firewall redirect',
} as const;
const policy = (about: string): Field => ({ words: ['ACCEPT', 'REJECT', 'DROP'], about });
const DEFAULTS = 'Default: that of the firewall.';

const REDIRECT: Fields = {
  src: zone('Zone from which the traffic comes: the name of a FirewallZone.'),
  src_ip: ip('Sender.'),
  src_dip: ip('Receiver before the translation.'),
  src_mac: MAC,
  src_port: port('Port of the sender.'),
  src_dport: port('Port of the receiver before the translation.'),
  proto: protocol(),
  dest: zone('Zone to which the traffic goes: the name of a FirewallZone.'),
  dest_ip: ip('Receiver.'),
  dest_port: port('Port of the receiver.'),
  mark: MARK,
  family: FAMILY,
};

/** The firewall of OpenWrt. */
export const FIREWALL_KINDS: readonly FunctionKind[] = [
  {
    ...FIREWALL,
    kind: 'FirewallZone',
    mayCutOff: true,
    about: 'A group of networks of a network function that its firewall treats alike.',
    path: 'firewall/v1/zones',
    collection: 'zones',
    space: 'firewall zone',
    maxName: 11,
    fields: {
      network: {
        form: 'interface',
        list: true,
        required: true,
        needs: 'interface',
        about: 'Names of the interfaces in the network config of the function.',
      },
      masq: bit('Whether senders in other zones are hidden behind the address of the interface, `"1"` or `"0"`.'),
      masq_src: { form: 'maskedIp', list: true, about: 'Senders to hide. With `!` before it: all others.' },
      masq_dest: {
        form: 'maskedIp',
        list: true,
        about: 'Receivers from which senders are hidden. With `!` before it: all others.',
      },
      masq_allow_invalid: bit('Whether packets without a connection pass, `"1"` or `"0"`.'),
      mtu_fix: bit('Whether the segment size of TCP is lowered to fit the link, `"1"` or `"0"`.'),
      input: policy(`What happens to traffic to the function itself. ${DEFAULTS}`),
      forward: policy(`What happens to traffic between the networks of the zone. ${DEFAULTS}`),
      output: policy(`What happens to traffic from the function itself. ${DEFAULTS}`),
      family: FAMILY,
      subnet: { form: 'ip', list: true, about: 'Networks that belong to the zone.' },
      extra_src: { form: 'extra', about: 'More arguments for iptables, for traffic from the zone.' },
      etra_dest: {
        form: 'extra',
        about: 'More arguments for iptables, for traffic to the zone. The function spells it so.',
      },
    },
    rules: [noIpv6('masq_src', 'masq_dest', 'subnet')],
  },
  {
    ...FIREWALL,
    kind: 'FirewallRule',
    mayCutOff: true,
    about: 'Traffic that the firewall of a network function accepts, rejects, drops or marks.',
    path: 'firewall/v1/rules',
    collection: 'rules',
    space: 'firewall rule',
    fields: {
      src: zone('Zone from which the traffic comes: the name of a FirewallZone.'),
      dest: zone('Zone to which the traffic goes: the name of a FirewallZone. Default: the function itself.'),
      ...FILTER,
      target: { words: FILTER_TARGETS, about: 'What happens to the traffic. Default: `DROP`.' },
    },
    rules: [...MARK_RULES, noIpv6('src_ip', 'dest_ip')],
  },
  {
    ...REDIRECTS,
    kind: 'FirewallSNAT',
    about: 'Traffic of a network function whose sender is replaced. FirewallDNAT shares its names.',
    fixed: { target: 'SNAT' },
    fields: {
      ...REDIRECT,
      dest: { ...REDIRECT['dest'], required: true } as Field,
      src_dip: { form: 'address', required: true, about: 'The IPv4 address that replaces the sender.' },
    },
    rules: [noIpv6('src_ip', 'src_dip', 'dest_ip')],
  },
  {
    ...REDIRECTS,
    kind: 'FirewallDNAT',
    mayCutOff: true,
    about: 'Traffic of a network function whose receiver is replaced. FirewallSNAT shares its names.',
    fixed: { target: 'DNAT' },
    fields: {
      ...REDIRECT,
      src: { ...REDIRECT['src'], required: true } as Field,
      dest_ip: { form: 'address', about: 'The IPv4 address that replaces the receiver.' },
    },
    rules: [noIpv6('src_ip', 'src_dip', 'dest_ip')],
  },
  {
    ...FIREWALL,
    kind: 'FirewallForwarding',
    about: 'Traffic from one zone of a network function that may go to another.',
    path: 'firewall/v1/forwardings',
    collection: 'forwardings',
    space: 'firewall forwarding',
    fields: {
      src: { ...zone('Zone from which the traffic comes: the name of a FirewallZone.'), required: true },
      dest: { ...zone('Zone to which the traffic goes: the name of a FirewallZone.'), required: true },
      family: { words: ['ipv4', 'ipv6', 'any'], about: 'The IP version. Default: `any`.' },
    },
  },
];
