/** One replica at a time. */
export const poolChange = (): object => ({
  message: 'One replica at a time',
  author: 'demo',
  apply: [manifest('Pool', 'edge', { maxUnavailable: 1, applyTimeout: '20s' })],
});

/** A policy, two rules that use it, and a probe of the host behind each replica. */
export const goodChange = (hostUrl: string): object => ({
  message: 'Traffic by wan1',
  author: 'demo',
  apply: [
    policy('wan1'),
    rule('web', 443),
    rule('mail', 25),
    manifest('Probe', 'host', { http: { url: hostUrl }, timeout: '2s', retries: 0 }),
  ],
});

export const newPort = (): object => ({ message: 'Another port', author: 'demo', apply: [rule('web', 8443)] });

export const withoutMail = (): object => ({
  message: 'No mail any more',
  author: 'demo',
  delete: [{ kind: 'Mwan3Rule', name: 'mail' }],
});

/** The function would report success, and iptables would reject it. */
export const badNat = (): object => ({
  message: 'Hide the inside',
  author: 'demo',
  apply: [manifest('CNFNAT', 'hide', { target: 'MASQUERADE', dest: '#default', src_port: 80 })],
});

/** The host behind the replicas is not reached by that link. */
export const badLink = (): object => ({ message: 'Traffic by wan2', author: 'demo', apply: [policy('wan2')] });

const EDGE = { nodeSelector: { matchLabels: { sdewanPurpose: 'edge' } } };
const manifest = (kind: string, name: string, spec: object): object => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind,
  metadata: { name },
  spec: { ...EDGE, ...spec },
});
const policy = (network: string): object =>
  manifest('Mwan3Policy', 'main', { members: [{ network, metric: 1, weight: 1 }] });
const rule = (name: string, dest_port: number): object =>
  manifest('Mwan3Rule', name, { policy: 'main', proto: 'tcp', dest_port });
