import { ClusterApi } from './lean.js';

const CA = Buffer.from('x').toString('base64');
interface Parts {
  readonly cluster?: object;
  readonly user?: object;
  readonly more?: object;
}
const kubeconfig = ({ cluster = {}, user = { token: 't' }, more = {} }: Parts = {}): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    clusters: [
      { name: 'c', cluster: { server: 'https://10.0.0.1:6443', 'certificate-authority-data': CA, ...cluster } },
    ],
    users: [{ name: 'u', user }],
    ...more,
  });
const open = (text: string): Promise<ClusterApi> => ClusterApi.open({ kubeconfig: text, timeoutMs: 1_000 });

test.each<readonly [string, Parts]>([
  ['a token', {}],
  ['a client certificate', { user: { 'client-certificate-data': CA, 'client-key-data': CA } }],
])('a kubeconfig with %s can be used', async (_name, parts) => {
  const api = await open(kubeconfig(parts));
  expect(api.server).toBe('https://10.0.0.1:6443');
  await api.close();
});

test.each<readonly [string, string, string]>([
  ['no YAML', '{', 'the kubeconfig cannot be read: '],
  ['nothing', '', 'the kubeconfig cannot be read: '],
  ['no context', kubeconfig({ more: { 'current-context': '' } }), 'names no cluster in its current context (none)'],
  ['another context', kubeconfig({ more: { 'current-context': 'x' } }), 'names no cluster in its current context (x)'],
  ['no user', kubeconfig({ more: { users: [] } }), 'the kubeconfig names no user in its current context (c)'],
  ['no URL', kubeconfig({ cluster: { server: '10.0.0.1' } }), 'the kubeconfig has no server that is a URL: "10.0.0.1"'],
  [
    'a command, which would run on this machine',
    kubeconfig({ user: { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: '/bin/sh' } } }),
    'gets its credentials from a command (/bin/sh), which Sluice does not run: use the token of a service account or a client certificate',
  ],
  [
    'an auth-provider',
    kubeconfig({ user: { 'auth-provider': { name: 'gcp' } } }),
    'gets its credentials from an auth-provider, which Sluice does not support',
  ],
  [
    'a file of this machine as its key',
    kubeconfig({ user: { 'client-certificate-data': CA, 'client-key': '/etc/shadow' } }),
    'names a file as client-key (/etc/shadow): put its content into the kubeconfig, as kubectl config view --raw --flatten does',
  ],
  [
    'a file as its CA',
    kubeconfig({ cluster: { 'certificate-authority': 'ca.crt' } }),
    'names a file as certificate-authority',
  ],
  [
    'a file as its token',
    kubeconfig({ user: { tokenFile: '/etc/shadow' } }),
    'names a tokenFile: put the token itself',
  ],
])('one with %s is refused, with the reason', async (_name, text, message) => {
  await expect(open(text)).rejects.toThrow(message);
  await expect(open(text)).rejects.toMatchObject({ name: 'KubeConfigError' });
});
