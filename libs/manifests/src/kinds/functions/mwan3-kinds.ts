import { ip, noIpv6, port } from './fields.js';
import type { FunctionKind } from './function-kind.js';

const MWAN3 = {
  post: 'conflicts',
  space: 'mwan3 section',
  after: { service: 'mwan3', action: 'restart' },
} as const;

/** Which WAN link traffic takes. */
export const MWAN3_KINDS: readonly FunctionKind[] = [
  {
    ...MWAN3,
    kind: 'Mwan3Policy',
    about: 'The WAN links of a network function that traffic is spread over.',
    path: 'mwan3/v1/policies',
    collection: 'policies',
    fields: {
      members: {
        list: true,
        required: true,
        about: 'The links.',
        fields: {
          network: {
            form: 'interface',
            wire: 'interface',
            required: true,
            needs: 'interface',
            isSection: true,
            about: 'Name of the interface in the mwan3 config of the function.',
          },
          metric: { least: 1, most: 1_000, required: true, about: 'Links with the lowest metric are used first.' },
          weight: {
            least: 1,
            most: 1_000,
            required: true,
            about: 'Share of the traffic among links with the same metric.',
          },
        },
      },
    },
    rules: [{ rule: 'unique', list: 'members', field: 'network', why: 'a policy uses a network once' }],
  },
  {
    ...MWAN3,
    kind: 'Mwan3Rule',
    about: 'Which traffic of a network function uses which Mwan3Policy.',
    path: 'mwan3/v1/rules',
    collection: 'rules',
    fields: {
      policy: {
        form: 'reference',
        required: true,
        refersTo: 'Mwan3Policy',
        about: 'Name of the Mwan3Policy. The node must have it too.',
      },
      src_ip: { ...ip('Sender.'), mayBeEmpty: true },
      src_port: { ...port('Port of the sender.'), mayBeEmpty: true },
      dest_ip: { ...ip('Receiver.'), mayBeEmpty: true },
      dest_port: { ...port('Port of the receiver.'), mayBeEmpty: true },
      proto: { words: ['tcp', 'udp', 'icmp', 'all'], mayBeEmpty: true, about: 'The protocol.' },
      family: {
        words: ['ipv4', 'ipv6', 'all'],
        mayBeEmpty: true,
        about: 'The IP version. With `ipv6`, no address can be given, because the function knows only IPv4.',
      },
      sticky: {
        words: ['0', '1'],
        mayBeEmpty: true,
        about: 'Whether later connections of a sender take the same link, `"1"` or `"0"`.',
      },
      timeout: {
        least: 1,
        most: 2_147_483_647,
        mayBeEmpty: true,
        about: 'How many seconds a sender sticks to its link.',
      },
    },
    rules: [
      noIpv6('src_ip', 'dest_ip'),
      {
        rule: 'forbids',
        when: { field: 'proto', is: ['icmp'] },
        fields: ['src_port', 'dest_port'],
        why: 'ICMP has no ports',
      },
    ],
  },
];
