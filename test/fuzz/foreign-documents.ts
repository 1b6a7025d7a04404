/** Well-formed documents of other systems, which people may publish to the wrong place. */
export const FOREIGN: readonly object[] = [
  {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'default' },
    spec: { containers: [{ name: 'web', image: 'nginx', ports: [{ containerPort: 80 }] }] },
  },
  {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name: '99-worker', labels: { 'machineconfiguration.openshift.io/role': 'worker' } },
    spec: {
      config: {
        ignition: { version: '3.2.0' },
        storage: { files: [{ path: '/etc/motd', contents: { source: 'data:,hi' } }] },
      },
    },
  },
  {
    apiVersion: 'sluice.dev/v2',
    kind: 'File',
    metadata: { name: 'motd' },
    spec: { nodeSelector: {}, path: '/etc/motd', content: 'from the future' },
  },
  { specversion: '1.0', type: 'com.example.event', source: '/here', id: '1', data: { node: 'edge-01.dc1', v: 1 } },
  { jsonrpc: '2.0', method: 'config.desired', params: [], id: 1 },
];
