import type { Chance } from '../../simulation/world/chance.js';
import { junk, unreadable, type Example, type Junk } from '../junk.js';
import type { DeliveredJunk } from './door.js';
import { FUNCTION_SPECS } from './function-specs.js';
import { oddHeaders } from './headers.js';

const NOBODY = { matchLabels: { role: 'nobody' } };
/** Selects no node, so that a change that happens to be valid changes nothing. */
const FILE: Example = {
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'File',
  metadata: { name: 'fuzz' },
  spec: {
    nodeSelector: NOBODY,
    path: '/etc/fuzz.conf',
    content: 'x',
    mode: '0644',
    owner: 'www-data',
    group: '33',
    hardLinks: 'break',
  },
};
const CHANGE: Example = {
  apply: [FILE],
  delete: [{ kind: 'File', name: 'gone' }],
  message: 'm',
  author: 'a',
  strategy: { maxFailures: 1 },
  retryOf: '',
};
/**
 * One fragment of each kind, with every field that is worth breaking. Fragments that would touch a machine select no
 * node.
 */
export const SPECS: Readonly<Record<string, Example>> = {
  File: { nodeSelector: {}, path: '/etc/x', content: 'x', mode: '0644' },
  Directory: { nodeSelector: {}, path: '/etc/x', mode: '0755' },
  Link: { nodeSelector: {}, path: '/etc/x', target: '/etc/y' },
  Pool: { nodeSelector: {}, maxUnavailable: '10%', applyTimeout: '1m', drainTimeout: '1m', drift: 'report' },
  Probe: { nodeSelector: {}, tcp: { address: '127.0.0.1:1' }, timeout: '1s', retries: 1 },
  Exec: { nodeSelector: NOBODY, check: { argv: ['true'] }, apply: { argv: ['true'] }, timeout: '5s' },
  DisruptionPolicy: {
    nodeSelector: {},
    default: [{ kind: 'none' }],
    files: [{ path: '/etc', actions: [{ kind: 'reboot' }] }],
  },
  RolloutPolicy: { nodeSelector: {}, maxFailures: 1 },
  SystemdUnit: {
    nodeSelector: NOBODY,
    name: 'fuzz.service',
    content: '[Service]\nExecStart=/bin/true\n',
    dropIns: [{ name: '10-x.conf', content: '[Service]\nMemoryMax=64M\n' }],
    enabled: true,
  },
  Sysctl: { nodeSelector: NOBODY, key: 'vm.swappiness', value: '10' },
  KernelArguments: { nodeSelector: NOBODY, arguments: ['nosmt', 'isolcpus=2-7'] },
  SshKeys: {
    nodeSelector: NOBODY,
    user: 'core',
    keys: ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ5lXwPqNQZLQ6Q0Hn0g2l0X0mBz0mJ7S3b8gq5D3vYk oncall@example'],
  },
  Vrf: {
    nodeSelector: NOBODY,
    vrf: 'internet',
    vni: 16,
    routeTarget: '64512:100',
    import: [{ cidr: '10.0.0.0/8', action: 'permit', ge: 8, le: 32 }],
    aggregate: ['10.0.0.0/8'],
    communities: ['64512:1'],
    loopbacks: [{ name: 'lo.internet', subnet: '192.0.2.7/32' }],
  },
  Layer2Network: {
    nodeSelector: NOBODY,
    id: 100,
    mtu: 9_000,
    trunk: 'bond0',
    anycastMac: '02:00:00:00:00:01',
    anycastGateways: ['10.0.0.1/24'],
    vrf: 'internet',
  },
  RoutingTable: {
    nodeSelector: NOBODY,
    tableId: 100,
    routes: [{ to: '0.0.0.0/0', via: '192.0.2.1', interface: 'eth0' }],
    rules: [{ priority: 1, from: '10.1.0.0/16' }],
  },
  BgpPeering: {
    nodeSelector: NOBODY,
    network: 'storage',
    remoteAs: 64_512,
    import: [{ cidr: '10.0.0.0/8', action: 'permit' }],
    maximumPrefixes: 10,
    holdTime: '90s',
    keepaliveTime: '30s',
    bfd: true,
  },
  ...FUNCTION_SPECS,
  FleetChange: {
    nodeSelector: NOBODY,
    apply: [
      {
        apiVersion: 'sluice.dev/v1alpha1',
        kind: 'File',
        metadata: { name: 'fuzz' },
        spec: { nodeSelector: NOBODY, path: '/etc/fuzz', content: '{{ node.name }}' },
      },
    ],
  },
  KubeObjects: {
    nodeSelector: NOBODY,
    template: true,
    takeOver: false,
    objects: [
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'fuzz' } },
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'a', namespace: 'fuzz' },
        data: { a: '{{ node.name }}' },
      },
    ],
  },
  FluxSync: {
    nodeSelector: NOBODY,
    git: { url: 'https://example.com/fuzz', commit: '0'.repeat(40), branch: 'main', secret: 'fuzz' },
    placement: 'cluster',
    namespace: 'fuzz',
    path: './clusters/{{ node.name }}',
    prune: true,
    interval: '5m',
    timeout: '3m',
    healthChecks: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'a', namespace: 'fuzz' }],
    targetNamespace: 'fuzz',
    serviceAccount: 'fuzz',
    substitute: { NODE: '{{ node.name }}', ZONE: '{{ bindings.ZONE }}' },
    bindings: [
      { name: 'ZONE', label: 'zone', default: 'none' },
      {
        name: 'REGION',
        object: {
          from: 'hub',
          apiVersion: 'v1',
          kind: 'ConfigMap',
          namespace: 'a',
          name: 'b',
          fieldPath: 'data.region',
        },
      },
    ],
  },
  BoundValues: {
    values: [
      {
        from: 'cluster',
        apiVersion: 'v1',
        kind: 'ConfigMap',
        namespace: 'a',
        name: 'b',
        fieldPath: 'data.c',
        value: 'd',
      },
      {
        from: 'hub',
        apiVersion: 'v1',
        kind: 'ConfigMap',
        name: 'b',
        fieldPath: 'data.c',
        missing: 'it does not exist',
      },
    ],
    after: 'c1',
  },
};

const SOURCES = ['fuzz', 'fuzz', 'fuzz', 'UPPER', 'a.b.c', '__proto__', '-', 'ü', 'x'.repeat(200)];

/** A message to `config.desired.<source>` that is not a valid change, or barely is. */
export function badChange(chance: Chance): DeliveredJunk {
  const subject = `config.desired.${chance.pick(SOURCES)}`;
  return {
    ...chance.pick([
      () => junk(chance, CHANGE),
      () => junk(chance, FILE),
      () => badSpec(chance),
      () => manyReasons(chance),
      () => unreadable(chance, CHANGE),
    ])(),
    subject,
    headers: oddHeaders(chance),
  };
}

/** One manifest whose spec has one error. */
function badSpec(chance: Chance): Junk {
  const kind = chance.pick(Object.keys(SPECS));
  const { body, what, field } = junk(chance, SPECS[kind] as Example);
  const text = `{"apply":[{"apiVersion":"sluice.dev/v1alpha1","kind":"${kind}","metadata":{"name":"fuzz${chance.integer(1, 9)}"},"spec":`;
  return {
    what: `${kind}: ${what}`,
    body: Buffer.concat([Buffer.from(text), body, Buffer.from('}]}')]),
    unreadable: false,
    ...(field === undefined ? {} : { field: `spec.${field}` }),
  };
}

/** So many errors that the answer would exceed the maximum size of a message. */
function manyReasons(chance: Chance): Junk {
  const key = chance.pick(['"', 'ä', 'x', '\u2028']).repeat(chance.pick([10, 10_000, 100_000]));
  const wrong = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`k${i}`, i]));
  const body = chance.pick<() => unknown>([
    () => ({ apply: Array.from({ length: 20_000 }, () => 1) }),
    () => ({ delete: Array.from({ length: 20_000 }, () => ({ kind: 'a', name: 'B' })) }),
    () => ({ [key]: 1, apply: [FILE] }),
    () => ({ apply: [{ ...FILE, spec: { ...(FILE['spec'] as object), [key]: wrong, ...wrong } }] }),
    () => ({ apply: [{ ...FILE, metadata: { name: 'fuzz', labels: { [key]: 1, ...wrong } } }] }),
    () => ({ apply: [{ ...FILE, kind: key }] }),
  ])();
  return { what: 'more reasons than an answer holds', body: Buffer.from(JSON.stringify(body)), unreadable: false };
}
