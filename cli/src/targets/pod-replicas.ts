import type { KubeSecret, PodReplica } from '#libs/kube';
import { isNodeName } from '#libs/contracts';
import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import type { FunctionReplica } from '../../../services/applier/src/shell/targets/index.js';
import { INVENTORY_LABEL, NAMESPACE_LABEL, type ExistingNode, type InventoryProblem } from './inventory.js';

/** Labels of a pod that name Secrets in its namespace. */
const ACCOUNT_LABEL = 'cnf-account-secret';
const CERTIFICATE_LABEL = 'cnf-cert-secret';
/** If the function does not listen on 443. */
const PORT_ANNOTATION = 'sluice.dev/port';
const USER = 'root';
const LUCI = '/cgi-bin/luci';
/** Each of their pods has another name. */
const NEW_NAMES = ['ReplicaSet', 'ReplicationController', 'DaemonSet', 'Job'];

export interface PodWorld {
  readonly pods: Iterable<PodReplica>;
  /** `unread`: not known yet. */
  readonly secret: (reference: SecretReference) => KubeSecret | 'unread' | undefined;
  readonly clusterId: string;
}

export interface SecretReference {
  readonly namespace: string;
  readonly name: string;
}

export interface PodListing {
  readonly replicas: readonly FunctionReplica[];
  readonly problems: readonly InventoryProblem[];
  readonly nodes: ReadonlyMap<string, ExistingNode>;
}

/** The replicas of a network function that the pods are. A pod without an address is waited for. */
export function replicasOf({ pods, secret, clusterId }: PodWorld): PodListing {
  const replicas: FunctionReplica[] = [];
  const problems: InventoryProblem[] = [];
  const nodes = new Map<string, ExistingNode>();
  const byAddress = new Map<string, PodReplica>();
  // If two pods have one address, as on the network of their host, the ready one is the one that answers.
  for (const pod of [...pods].sort(readyFirst)) {
    const problem = (reason: string, todo: string): void =>
      void problems.push({ object: `pod ${pod.namespace}/${pod.name}`, reason, todo });
    const node = nodeOfPod(pod);
    if (!isNodeName(node)) {
      problem(`${node} cannot be the name of a node`, 'shorten the name of its workload');
      continue;
    }
    nodes.set(node, { isReplaced: !NEW_NAMES.includes(pod.controller ?? '') });
    if (pod.ip === '') continue;
    const port = pod.annotations[PORT_ANNOTATION] ?? '443';
    const other = byAddress.get(`${pod.ip} ${port}`);
    if (other !== undefined) {
      problem(`has the address ${pod.ip} of pod ${other.namespace}/${other.name}`, 'delete one of them');
      continue;
    }
    byAddress.set(`${pod.ip} ${port}`, pod);
    const address = addressOf(pod, port, secret);
    if (address === 'unread') continue;
    if ('reason' in address) problem(address.reason, address.todo);
    else
      replicas.push({
        name: node,
        labels: { ...pod.labels, [INVENTORY_LABEL]: clusterId, [NAMESPACE_LABEL]: pod.namespace },
        instance: pod.uid,
        unavailable: pod.unready,
        ...address,
      });
  }
  return { replicas, problems, nodes };
}

export const nodeOfPod = ({ namespace, name }: Pick<PodReplica, 'namespace' | 'name'>): string =>
  `${name}.${namespace}`;

/** A namespace has no dots. */
export function podOfNode(node: string): Pick<PodReplica, 'namespace' | 'name'> {
  const dot = node.lastIndexOf('.');
  return { name: node.slice(0, dot), namespace: node.slice(dot + 1) };
}

/** The Secrets that a pod names. */
export const secretsOf = ({ namespace, labels }: PodReplica): readonly SecretReference[] =>
  [ACCOUNT_LABEL, CERTIFICATE_LABEL].flatMap((label) => {
    const name = labels[label] ?? '';
    return name === '' ? [] : [{ namespace, name }];
  });

function readyFirst(one: PodReplica, other: PodReplica): number {
  const [a, b] = [one, other].map((pod) => `${pod.unready === undefined ? 0 : 1} ${nodeOfPod(pod)}`);
  return (a as string) < (b as string) ? -1 : 1;
}

type Address = Pick<FunctionReplica, 'baseUrl' | 'ip' | 'user' | 'password' | 'ca'>;
type Refusal = Pick<InventoryProblem, 'reason' | 'todo'>;

function addressOf(pod: PodReplica, port: string, secret: PodWorld['secret']): Address | Refusal | 'unread' {
  if (!/^[1-9]\d{0,4}$/.test(port) || Number(port) > 65_535)
    return {
      reason: `its annotation ${PORT_ANNOTATION} is not a port: ${JSON.stringify(port)}`,
      todo: 'set it to a number from 1 to 65535, or remove it',
    };
  const value = (label: string, key: string): string | Refusal | 'unread' => valueIn(pod, label, key, secret);
  const password = value(ACCOUNT_LABEL, 'password');
  if (typeof password !== 'string' || password === 'unread') return password;
  const account = { user: USER, password: password.trim() };
  if ((pod.labels[CERTIFICATE_LABEL] ?? '') === '') {
    const host = isIP(pod.ip) === 6 ? `[${pod.ip}]` : pod.ip;
    return { baseUrl: `https://${host}:${port}${LUCI}`, ...account };
  }
  const ca = value(CERTIFICATE_LABEL, 'ca.crt');
  if (typeof ca !== 'string' || ca === 'unread') return ca;
  if (!isCertificate(ca))
    return {
      reason: `the key ca.crt of Secret ${pod.labels[CERTIFICATE_LABEL]} has no certificate`,
      todo: 'it must be PEM, as in -----BEGIN CERTIFICATE-----',
    };
  const host = `${pod.ip.replaceAll(/[.:]/g, '-')}.${pod.namespace}.pod.cluster.local`;
  return { baseUrl: `https://${host}:${port}${LUCI}`, ip: pod.ip, ...account, ca };
}

function valueIn(
  { namespace, labels }: PodReplica,
  label: string,
  key: string,
  secret: PodWorld['secret'],
): string | Refusal | 'unread' {
  const name = labels[label] ?? '';
  if (name === '') return { reason: `has no label ${label}`, todo: `set it to the name of a Secret with ${key}` };
  const found = secret({ namespace, name });
  if (found === 'unread') return 'unread';
  if (found === undefined)
    return {
      reason: `its label ${label} names the Secret ${name}, which does not exist in namespace ${namespace}`,
      todo: `create it with the key ${key}, or correct the label`,
    };
  const text = found.data[key] ?? '';
  if (text.trim() === '')
    return { reason: `the Secret ${name} has no key ${key}, or it is empty`, todo: `add the key to the Secret` };
  return text;
}

function isCertificate(text: string): boolean {
  try {
    void new X509Certificate(text);
    return true;
  } catch {
    return false;
  }
}
