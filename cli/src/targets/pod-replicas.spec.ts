import type { KubeSecret, PodReplica } from '#libs/kube';
import { testAuthority } from '#libs/testing';
import { nodeOfPod, podOfNode, replicasOf, secretsOf } from './pod-replicas.js';

const pod = (more: Partial<PodReplica> = {}): PodReplica => ({
  namespace: 'sdewan',
  name: 'cnf-0',
  uid: 'u1',
  labels: { sdewanPurpose: 'edge', 'cnf-account-secret': 'account', 'cnf-cert-secret': 'cert' },
  annotations: {},
  ip: '10.0.0.7',
  controller: 'StatefulSet',
  unready: undefined,
  ...more,
});

let ca: string;
beforeAll(async () => {
  ({ ca } = await testAuthority());
});

/** What the pods are, with these Secrets in their namespace. */
function listed(
  pods: readonly PodReplica[],
  secrets: Readonly<Record<string, Readonly<Record<string, string>> | 'unread'>> = {
    account: { password: 'secret\n' },
    cert: { 'ca.crt': ca },
  },
) {
  return replicasOf({
    pods,
    clusterId: 'hub',
    secret: ({ namespace, name }) => {
      const data = namespace === 'sdewan' ? secrets[name] : undefined;
      return data === 'unread' || data === undefined ? data : ({ namespace, name, data } as unknown as KubeSecret);
    },
  });
}

it('makes a replica of a pod, with what its Secrets contain and its certificate names', () => {
  const { replicas, problems, nodes } = listed([pod()]);
  expect(replicas).toEqual([
    {
      name: 'cnf-0.sdewan',
      labels: { ...pod().labels, 'sluice.dev/inventory': 'hub', 'sluice.dev/namespace': 'sdewan' },
      instance: 'u1',
      unavailable: undefined,
      baseUrl: 'https://10-0-0-7.sdewan.pod.cluster.local:443/cgi-bin/luci',
      ip: '10.0.0.7',
      user: 'root',
      password: 'secret',
      ca,
    },
  ]);
  expect(problems).toEqual([]);
  expect([...nodes]).toEqual([['cnf-0.sdewan', { isReplaced: true }]]);
});

it('uses the address itself, and the authorities of the system, for a pod without a certificate', () => {
  const labels = { 'cnf-account-secret': 'account' };
  const urls = [
    pod({ labels }),
    pod({ labels, ip: 'fd00::7', name: 'six', annotations: { 'sluice.dev/port': '8443' } }),
  ];
  expect(listed(urls).replicas.map(({ baseUrl, ip, ca: authority }) => [baseUrl, ip, authority])).toEqual([
    ['https://10.0.0.7:443/cgi-bin/luci', undefined, undefined],
    ['https://[fd00::7]:8443/cgi-bin/luci', undefined, undefined],
  ]);
});

it.each([
  ['its password Secret is missing', {}, {}, /cnf-account-secret names the Secret account, which does not exist/],
  ['the key is missing', {}, { account: { other: 'x' } }, /Secret account has no key password, or it is empty/],
  ['the password is empty', {}, { account: { password: '\n' } }, /Secret account has no key password, or it is empty/],
  ['the certificate is text', {}, { account: { password: 'x' }, cert: { 'ca.crt': 'x' } }, /ca.crt .* no certificate/],
  ['the CA is missing', {}, { account: { password: 'x' } }, /cnf-cert-secret names the Secret cert, which does not/],
  ['it names no Secret', { labels: {} }, {}, /has no label cnf-account-secret/],
  ['its port is none', { annotations: { 'sluice.dev/port': '70000' } }, {}, /sluice.dev\/port is not a port: "70000"/],
  ['its name is too long', { name: 'x'.repeat(250) }, {}, /cannot be the name of a node/],
])('names a pod that cannot be served: %s', (_, more, secrets, reason) => {
  const { replicas, problems } = listed([pod(more)], secrets as Parameters<typeof listed>[1]);
  expect(replicas).toEqual([]);
  expect(problems).toMatchObject([{ object: `pod sdewan/${pod(more).name}`, reason: expect.stringMatching(reason) }]);
});

it('waits for an address and for Secrets that were not read yet, and knows that the node exists', () => {
  for (const { replicas, problems, nodes } of [listed([pod({ ip: '' })], {}), listed([pod()], { account: 'unread' })]) {
    expect([replicas, problems]).toEqual([[], []]);
    expect([...nodes.keys()]).toEqual(['cnf-0.sdewan']);
  }
});

it('serves one of two pods with one address: the ready one', () => {
  const { replicas, problems } = listed([pod({ name: 'a', unready: 'the pod is terminating' }), pod({ name: 'b' })]);
  expect(replicas.map(({ name }) => name)).toEqual(['b.sdewan']);
  expect(problems).toMatchObject([{ object: 'pod sdewan/a', reason: 'has the address 10.0.0.7 of pod sdewan/b' }]);
});

it.each([
  ['ReplicaSet', false],
  ['DaemonSet', false],
  ['StatefulSet', true],
  [undefined, true],
])('knows whether the pods of a %s are replaced under their name', (controller, isReplaced) => {
  expect([...listed([pod({ controller })]).nodes.values()]).toEqual([{ isReplaced }]);
});

it('names a node so that its pod is known, also if the name of the pod has dots', () => {
  const of = { namespace: 'sdewan', name: 'cnf.v2-0' };
  expect(podOfNode(nodeOfPod(of))).toEqual(of);
});

it('follows the Secrets that a pod names', () => {
  expect(secretsOf(pod())).toEqual([
    { namespace: 'sdewan', name: 'account' },
    { namespace: 'sdewan', name: 'cert' },
  ]);
  expect(secretsOf(pod({ labels: {} }))).toEqual([]);
});
