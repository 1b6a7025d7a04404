import type { Example } from '../junk.js';

/** Nobody has this label, so these manifests reach no node. */
const NOBODY = { matchLabels: { role: 'nobody' } };
const CONNECTION = { name: 'fuzz_1', conn_type: 'tunnel', mode: 'start' };
const PEER = {
  nodeSelector: NOBODY,
  remote: 'hub.example.com',
  authentication_method: 'psk',
  pre_shared_key: 'k',
  crypto_proposal: ['strong'],
};

/** A valid spec of every kind for network functions. */
export const FUNCTION_SPECS: Readonly<Record<string, Example>> = {
  Mwan3Policy: { nodeSelector: NOBODY, members: [{ network: 'wan1', metric: 1, weight: '3' }] },
  Mwan3Rule: { nodeSelector: NOBODY, policy: 'balanced', dest_port: 443, sticky: '1' },
  FirewallZone: { nodeSelector: NOBODY, network: ['lan'], input: 'ACCEPT', subnet: ['10.0.0.0/8'] },
  FirewallRule: { nodeSelector: NOBODY, src: 'inside', icmp_type: ['ping'], mark: '0x10/0xff', target: 'DROP' },
  FirewallSNAT: { nodeSelector: NOBODY, dest: 'outside', src_dip: '192.0.2.5' },
  FirewallDNAT: { nodeSelector: NOBODY, src: 'outside', dest_ip: '10.0.0.1' },
  FirewallForwarding: { nodeSelector: NOBODY, src: 'inside', dest: 'outside' },
  IpsecProposal: { nodeSelector: NOBODY, encryption_algorithm: 'aes', hash_algorithm: 'md5', dh_group: 'x448' },
  IpsecHost: { ...PEER, connections: [{ ...CONNECTION, local_sourceip: '%config' }] },
  IpsecSite: { ...PEER, connections: [{ ...CONNECTION, local_subnet: '10.0.0.0/8' }] },
  CNFNAT: { nodeSelector: NOBODY, target: 'MASQUERADE', dest: '#default', proto: 'tcp', dest_port: 443 },
  CNFRoute: { nodeSelector: NOBODY, dst: '10.0.0.0/8', dev: '#default', table: 'cnf' },
  CNFRouteRule: { nodeSelector: NOBODY, src: '10.0.0.0/8', not: true, prio: 100, fwmark: '0x1f', table: 'main' },
  NetworkFirewallRule: { nodeSelector: NOBODY, src: 'eth0', proto: 'icmp', icmp_type: ['any'], target: 'DROP' },
  SdewanApplication: { nodeSelector: NOBODY, iplist: ['10.0.0.1'] },
  // Hosts are addresses, so that nothing is looked up.
  CNFService: { nodeSelector: NOBODY, fullname: '192.0.2.1', port: 443, dport: '8443' },
  CNFLocalService: { nodeSelector: NOBODY, localservice: '10.0.0.1', remoteservice: '192.0.2.1', remoteport: 80 },
  CNFHubSite: { nodeSelector: NOBODY, type: 'Device', subnet: '10.0.0.0/8', devicepip: '10.9.0.1' },
  ResolvedName: { addresses: ['192.0.2.1', '192.0.2.2'] },
};
