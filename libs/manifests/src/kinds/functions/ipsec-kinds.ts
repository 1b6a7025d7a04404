import type { Field, FieldRule, Fields, FunctionKind } from './function-kind.js';

const IPSEC = {
  post: 'conflicts',
  space: 'ipsec section',
  after: { service: 'ipsec', action: 'restart' },
} as const;
const REMOTES = { ...IPSEC, path: 'ipsec/v1/remotes', collection: 'remotes', added: { enabled: '1' } } as const;

const sizes = (cipher: string, modes: readonly string[]): readonly string[] =>
  ['128', '192', '256'].flatMap((bits) => modes.map((mode) => `${cipher}${bits}${mode}`));
const CCM = ['ccm8', 'ccm12', 'ccm16', 'ccm64', 'ccm96', 'ccm128'];
const ENCRYPTIONS = [
  ...['3des', 'cast128', 'blowfish', 'blowfish128', 'blowfish192', 'blowfish256', 'null', 'aes'],
  ...sizes('aes', ['', 'ctr', ...CCM, ...CCM.map((mode) => mode.replace('ccm', 'gcm'))]),
  'camellia',
  ...sizes('camellia', ['', 'ctr', ...CCM]),
  'chacha20poly1305',
];
const HASHES = [
  ...['md5', 'sha', 'sha1', 'aesxcbc', 'sha256', 'sha2_256', 'sha384', 'sha2_384', 'sha512', 'sha2_512'],
  ...['sha256_96', 'sha2_256_96'],
];
const GROUPS = [
  ...['768', '1024', '1536', '2048', '3072', '4096', '6144', '8192', '1024s160', '2048s224', '2048s256'].map(
    (size) => `modp${size}`,
  ),
  ...['192', '224', '256', '384', '521', '224bp', '256bp', '384bp', '512bp'].map((size) => `ecp${size}`),
  ...['curve25519', 'x25519', 'curve448', 'x448'],
];

const PROPOSALS: Field = {
  form: 'reference',
  list: true,
  refersTo: 'IpsecProposal',
  about: 'Names of IpsecProposals, in the order of preference.',
};
const certificates = (what: string): Field => ({
  form: 'certificates',
  about: `With \`pubkey\`: ${what} in base64. Several are joined by \`___\`.`,
});
const firewall = (side: string): Field => ({
  words: ['yes', 'no'],
  about: `Whether the firewall is opened on the ${side} side, \`"yes"\` or \`"no"\`.`,
});

const connections = (own: Fields): Field => ({
  list: true,
  required: true,
  isUnordered: true,
  about: 'The connections to this peer.',
  fields: {
    name: {
      form: 'connection',
      required: true,
      about: 'Name of the connection: letters, digits and `_`. Unique among all connections, proposals and peers.',
    },
    conn_type: { words: ['tunnel', 'transport'], required: true, about: 'The type of the connection.' },
    mode: {
      words: ['start', 'add', 'route'],
      required: true,
      about: 'When it is set up: at once, by the peer, or by traffic.',
    },
    ...own,
    local_updown: { form: 'script', about: 'Command that runs when the connection goes up or down.' },
    remote_updown: { form: 'script', about: 'The same on the side of the peer.' },
    local_firewall: firewall('local'),
    remote_firewall: firewall('remote'),
    remote_subnet: { form: 'subnets', about: 'IPv4 networks behind the peer, separated by commas.' },
    remote_sourceip: { form: 'sourceIps', about: 'Addresses that the peer gets: IPv4 networks, or `%config`.' },
    crypto_proposal: PROPOSALS,
    mark: { form: 'mark', about: 'Mark of the traffic of this connection.' },
    if_id: { form: 'mark', isDropped: true, about: 'Accepted and ignored, as the function does.' },
  },
});

const REMOTE: Fields = {
  remote: {
    form: 'gateway',
    wire: 'gateway',
    required: true,
    about: 'IPv4 address or host name of the peer, or `any`.',
  },
  type: {
    words: ['VTI-based', 'policy-based'],
    otherwise: 'policy-based',
    isShared: true,
    about: 'How traffic enters the tunnel, the same for all peers of a node. Default: `policy-based`.',
  },
  authentication_method: { words: ['psk', 'pubkey'], required: true, about: 'A shared key, or certificates.' },
  pre_shared_key: { form: 'secret', about: 'With `psk`: the shared key. Everybody who may read configs can read it.' },
  local_public_cert: certificates('own certificates'),
  local_private_cert: certificates('own private keys'),
  shared_ca: certificates('certificates of the authorities'),
  local_identifier: { form: 'identifier', about: 'Own identity.' },
  remote_identifier: { form: 'identifier', about: 'Identity of the peer.' },
  crypto_proposal: { ...PROPOSALS, required: true },
  force_crypto_proposal: { words: ['0', '1'], about: 'Whether only these proposals are accepted, `"1"` or `"0"`.' },
};

const AUTHENTICATION: readonly FieldRule[] = [
  ...['pre_shared_key'].map((field) => needs('psk', field)),
  ...['local_public_cert', 'local_private_cert', 'shared_ca'].map((field) => needs('pubkey', field)),
  { rule: 'unique', list: 'connections', field: 'name', why: 'each connection has its own name' },
];

/** Encrypted connections to other sites and hosts. */
export const IPSEC_KINDS: readonly FunctionKind[] = [
  {
    ...IPSEC,
    kind: 'IpsecProposal',
    about: 'The algorithms that a network function offers for an encrypted connection.',
    path: 'ipsec/v1/proposals',
    collection: 'proposals',
    fields: {
      encryption_algorithm: { words: ENCRYPTIONS, required: true, about: 'The encryption.' },
      hash_algorithm: { words: HASHES, required: true, about: 'The hash.' },
      dh_group: { words: GROUPS, required: true, about: 'The Diffie-Hellman group.' },
    },
  },
  {
    ...REMOTES,
    kind: 'IpsecHost',
    about: 'Encrypted connections of a network function to one host. IpsecSite shares its names.',
    fields: {
      ...REMOTE,
      connections: connections({
        local_sourceip: { form: 'sourceIps', about: 'Own addresses in the tunnel: IPv4 networks, or `%config`.' },
      }),
    },
    rules: AUTHENTICATION,
    sections: { list: 'connections', field: 'name' },
  },
  {
    ...REMOTES,
    kind: 'IpsecSite',
    about: 'Encrypted connections of a network function to another site. IpsecHost shares its names.',
    fields: {
      ...REMOTE,
      connections: connections({
        local_subnet: { form: 'subnets', required: true, about: 'Own IPv4 networks, separated by commas.' },
      }),
    },
    rules: AUTHENTICATION,
    sections: { list: 'connections', field: 'name' },
  },
];

function needs(method: string, field: string): FieldRule {
  return {
    rule: 'needs',
    when: { field: 'authentication_method', is: [method] },
    oneOf: [field],
    why: `authentication_method ${method} uses it`,
  };
}
