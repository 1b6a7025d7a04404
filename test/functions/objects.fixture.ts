import type { ConfigEntry } from '#libs/contracts';

export const entry = (kind: string, name: string, spec: object): ConfigEntry => ({
  kind,
  name,
  spec: spec as ConfigEntry['spec'],
});

export const POLICY = entry('Mwan3Policy', 'all', { members: [{ network: 'wan1', metric: 1, weight: 1 }] });
export const PROPOSAL = entry('IpsecProposal', 'strong', {
  encryption_algorithm: 'aes256',
  hash_algorithm: 'sha256',
  dh_group: 'modp4096',
});
export const [INSIDE, OUTSIDE] = ['inside', 'outside'].map((name) =>
  entry('FirewallZone', name, { network: ['lan'] }),
) as [ConfigEntry, ConfigEntry];

const PEM = '-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIU\n-----END CERTIFICATE-----\n';
export const base64 = (text: string): string => Buffer.from(text).toString('base64');
export const CERTIFICATE = base64(PEM);
const OTHER_CERTIFICATE = base64(PEM.replace('MIIB', 'MIIC'));
const KEYS = { local_public_cert: CERTIFICATE, local_private_cert: CERTIFICATE, shared_ca: CERTIFICATE };

/** Two versions of an object of each kind, and what they refer to. */
export interface Sample {
  readonly kind: string;
  readonly spec: object;
  readonly changed: object;
  readonly needs: readonly ConfigEntry[];
}

const peer = (spec: object): object => ({
  remote: '192.0.2.7',
  authentication_method: 'psk',
  pre_shared_key: 'k1',
  crypto_proposal: ['strong'],
  ...spec,
});
const tunnel = (name: string, spec: object = {}): object => ({ name, conn_type: 'tunnel', mode: 'start', ...spec });

export const SAMPLES: readonly Sample[] = [
  {
    kind: 'Mwan3Policy',
    needs: [],
    spec: POLICY.spec,
    changed: {
      members: [
        { network: 'wan1', metric: '2', weight: 3 },
        { network: 'wan2', metric: 1, weight: 1 },
      ],
    },
  },
  {
    kind: 'Mwan3Rule',
    needs: [POLICY],
    spec: { policy: 'all', dest_port: 443, src_ip: '', sticky: '1' },
    changed: { policy: 'all', dest_port: '8443' },
  },
  {
    kind: 'FirewallZone',
    needs: [],
    spec: { network: ['lan'], input: 'ACCEPT', masq_src: ['!10.0.0.0/8'] },
    changed: { network: ['lan', 'wan1'], input: 'DROP' },
  },
  {
    kind: 'FirewallRule',
    needs: [INSIDE, OUTSIDE],
    spec: { src: 'inside', dest: 'outside', proto: 'tcp', dest_port: 22, target: 'DROP' },
    changed: { src: 'inside', proto: 'icmp', icmp_type: ['ping'], target: 'MARK', set_mark: '0x1/0xf' },
  },
  {
    kind: 'FirewallSNAT',
    needs: [OUTSIDE],
    spec: { dest: 'outside', src_dip: '192.0.2.5' },
    changed: { dest: 'outside', src_dip: '192.0.2.6', src_ip: '10.0.0.0/8' },
  },
  {
    kind: 'FirewallDNAT',
    needs: [OUTSIDE],
    spec: { src: 'outside', dest_ip: '10.0.0.1' },
    changed: { src: 'outside', dest_ip: '10.0.0.2', dest_port: 443, proto: 'tcp' },
  },
  {
    kind: 'FirewallForwarding',
    needs: [INSIDE, OUTSIDE],
    spec: { src: 'inside', dest: 'outside' },
    changed: { src: 'outside', dest: 'inside', family: 'ipv4' },
  },
  { kind: 'IpsecProposal', needs: [], spec: PROPOSAL.spec, changed: { ...PROPOSAL.spec, dh_group: 'x448' } },
  {
    kind: 'IpsecHost',
    needs: [PROPOSAL],
    spec: peer({ connections: [tunnel('h1', { if_id: '7', local_sourceip: '%config' })] }),
    changed: peer({
      pre_shared_key: 'k2',
      type: 'VTI-based',
      connections: [{ ...tunnel('h2'), conn_type: 'transport' }, tunnel('h1', { crypto_proposal: ['strong'] })],
    }),
  },
  {
    kind: 'IpsecSite',
    needs: [PROPOSAL],
    spec: peer({
      ...KEYS,
      pre_shared_key: '',
      authentication_method: 'pubkey',
      connections: [tunnel('s1', { local_subnet: '10.0.0.0/8' })],
    }),
    changed: peer({
      ...KEYS,
      local_public_cert: OTHER_CERTIFICATE,
      authentication_method: 'pubkey',
      connections: [tunnel('s1', { local_subnet: '10.0.0.0/8' })],
    }),
  },
  {
    kind: 'CNFNAT',
    needs: [],
    spec: { target: 'SNAT', src_dip: '192.0.2.5', dest: '#source' },
    changed: { target: 'DNAT', src: '#default', proto: 'tcp', src_dport: 80, dest_ip: '10.0.0.1', index: 1 },
  },
  {
    kind: 'CNFRoute',
    needs: [],
    spec: { dst: '10.0.0.0/8', dev: '#default', table: 'cnf' },
    changed: { dst: 'default', dev: '#192.0.2.5', gw: '192.0.2.1' },
  },
  {
    kind: 'CNFRouteRule',
    needs: [],
    spec: { src: '10.0.0.0/8', prio: 100, table: '40' },
    changed: { dst: '10.0.0.0/8', not: true, fwmark: '0x1' },
  },
  {
    kind: 'NetworkFirewallRule',
    needs: [],
    spec: { src: 'eth0', target: 'DROP', proto: 'icmp', icmp_type: ['any'] },
    changed: { src: '#default', dest: 'net1', target: 'ACCEPT' },
  },
  {
    kind: 'SdewanApplication',
    needs: [],
    spec: { iplist: ['10.0.0.1', '10.0.0.2'] },
    changed: { iplist: ['10.0.0.2'] },
  },
];
