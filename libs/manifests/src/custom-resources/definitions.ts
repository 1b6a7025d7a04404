import type { Schema } from '../shape/checked.js';
import { KINDS } from '../kinds/registry.js';
import type { Kind } from '../kinds/kind.js';
import { API_VERSION } from '../manifest.js';
import { FRAGMENT_STATUS, POOL_STATUS, ROLLOUT_STATUS } from './status.js';
import { structuralOf } from './structural.js';

/** The group and version of all kinds, as paths of an API server name them. */
export const [API_GROUP, API_GROUP_VERSION] = API_VERSION.split('/') as [string, string];
/** The kind that shows a rollout; nobody publishes it. */
export const ROLLOUT_KIND = 'Rollout';

type Column = readonly [name: string, path: string, more?: { readonly type?: string; readonly wide?: boolean }];

interface Naming {
  readonly plural: string;
  readonly short: string;
  /** What tells one from the other at a glance. */
  readonly columns: readonly Column[];
}

/** `file` alone is nobody's to take: short names stand beside those of everything else in a cluster. */
const NAMES: Readonly<Record<string, Naming>> = {
  File: { plural: 'files', short: 'sfile', columns: [['Path', '.spec.path']] },
  Directory: { plural: 'directories', short: 'sdir', columns: [['Path', '.spec.path']] },
  Probe: { plural: 'probes', short: 'sprobe', columns: [] },
  Exec: { plural: 'execs', short: 'sexec', columns: [] },
  SystemdUnit: { plural: 'systemdunits', short: 'sunit', columns: [['Unit', '.spec.name']] },
  Sysctl: {
    plural: 'sysctls',
    short: 'ssysctl',
    columns: [
      ['Key', '.spec.key'],
      ['Value', '.spec.value'],
    ],
  },
  KernelArguments: { plural: 'kernelarguments', short: 'kargs', columns: [['Arguments', '.spec.arguments']] },
  SshKeys: { plural: 'sshkeys', short: 'skeys', columns: [['User', '.spec.user']] },
  Vrf: {
    plural: 'vrfs',
    short: 'svrf',
    columns: [
      ['VRF', '.spec.vrf'],
      ['VNI', '.spec.vni', { type: 'integer' }],
    ],
  },
  Layer2Network: {
    plural: 'layer2networks',
    short: 'sl2net',
    columns: [
      ['VLAN', '.spec.id', { type: 'integer' }],
      ['VNI', '.spec.vni', { type: 'integer' }],
    ],
  },
  RoutingTable: {
    plural: 'routingtables',
    short: 'srtable',
    columns: [['Table', '.spec.tableId', { type: 'integer' }]],
  },
  BgpPeering: {
    plural: 'bgppeerings',
    short: 'sbgp',
    columns: [
      ['Network', '.spec.network'],
      ['Remote-AS', '.spec.remoteAs', { type: 'integer' }],
    ],
  },
  Pool: {
    plural: 'pools',
    short: 'spool',
    columns: [
      ['Max-Unavailable', '.spec.maxUnavailable'],
      ['Members', '.status.members', { type: 'integer' }],
      ['Budget', '.status.budget', { type: 'integer' }],
      ['Unavailable', '.status.unavailable', { type: 'integer' }],
      ['Waiting', '.status.waiting', { type: 'integer' }],
      ['Used-By', '.status.usedBy', { wide: true }],
    ],
  },
  DisruptionPolicy: { plural: 'disruptionpolicies', short: 'dispol', columns: [] },
  RolloutPolicy: {
    plural: 'rolloutpolicies',
    short: 'ropol',
    columns: [['Max-Failures', '.spec.maxFailures', { type: 'integer' }]],
  },
  [ROLLOUT_KIND]: {
    plural: 'rollouts',
    short: 'srollout',
    columns: [
      ['Phase', '.status.phase'],
      ['Progress', '.status.progress'],
      ['Failed', '.status.failed', { type: 'integer' }],
      ['Owed', '.status.owed', { type: 'integer' }],
      ['Blocked', '.status.blocked', { type: 'integer' }],
      ['Paused', '.status.paused', { type: 'boolean' }],
      ['Source', '.status.source'],
      ['Message', '.status.message', { wide: true }],
    ],
  },
};

const STATE_COLUMNS: readonly Column[] = [
  ['Phase', '.status.phase'],
  ['Change', '.status.change'],
  ['Nodes', '.status.nodes', { type: 'integer' }],
  ['Applied', '.status.applied', { type: 'integer' }],
];
const LAST_COLUMNS: readonly Column[] = [['Message', '.status.message', { wide: true }]];

/** The path segment of a kind's objects: `files`. Throws for a kind that has none. */
export function pluralOf(kind: string): string {
  return namingOf(kind).plural;
}

/** The CustomResourceDefinitions of every kind, and that of rollouts, by the name of their file. */
export const customResourceDefinitions = (): Readonly<Record<string, Schema>> =>
  Object.fromEntries(
    [...KINDS.map(definitionOf), rolloutDefinition()].map((one) => [`${API_GROUP}_${one.spec.names.plural}.yaml`, one]),
  );

function definitionOf(kind: Kind) {
  const { columns } = namingOf(kind.name);
  const reserved = kind.reservedNames.map((name) => ({
    rule: `self.metadata.name != '${name}'`,
    message: `a ${kind.name} cannot be named ${name}`,
  }));
  return definition(
    kind.name,
    kind.name === 'Pool'
      ? [...columns, ...STATE_COLUMNS.slice(0, 2), ...LAST_COLUMNS]
      : [...columns, ...STATE_COLUMNS, ...LAST_COLUMNS],
    {
      // The name of a fragment is a DNS label, which is less than Kubernetes takes.
      metadata: {
        type: 'object',
        properties: { name: { type: 'string', pattern: '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$', maxLength: 63 } },
      },
      spec: structuralOf(kind.spec, kind.role === 'state'),
      status: kind.name === 'Pool' ? POOL_STATUS : FRAGMENT_STATUS,
    },
    ['spec'],
    reserved,
  );
}

const rolloutDefinition = () =>
  definition(
    ROLLOUT_KIND,
    namingOf(ROLLOUT_KIND).columns,
    {
      metadata: { type: 'object' },
      spec: {
        type: 'object',
        properties: {
          paused: {
            type: 'boolean',
            description:
              'Set to true holds the rollout, back to false lets it go on; other ways to do either are not undone.',
          },
        },
      },
      status: ROLLOUT_STATUS,
    },
    [],
    [],
  );

function definition(
  kind: string,
  columns: readonly Column[],
  parts: Readonly<Record<string, Schema>>,
  required: readonly string[],
  expressions: readonly object[],
) {
  const { plural, short } = namingOf(kind);
  const schema = {
    type: 'object',
    ...(required.length === 0 ? {} : { required }),
    properties: { apiVersion: { type: 'string' }, kind: { type: 'string' }, ...parts },
    ...(expressions.length === 0 ? {} : { 'x-kubernetes-validations': expressions }),
  };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${API_GROUP}` },
    spec: {
      group: API_GROUP,
      scope: 'Cluster',
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        shortNames: [short],
        categories: ['sluice'],
      },
      versions: [
        {
          name: API_GROUP_VERSION,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: schema },
          subresources: { status: {} },
          additionalPrinterColumns: [
            ...columns,
            ['Age', '.metadata.creationTimestamp', { type: 'date' }] as Column,
          ].map(([name, jsonPath, { type = 'string', wide = false } = {}]) => ({
            name,
            type,
            jsonPath,
            ...(wide ? { priority: 1 } : {}),
          })),
        },
      ],
    },
  };
}

function namingOf(kind: string): Naming {
  const naming = NAMES[kind];
  if (naming === undefined)
    throw new Error(`the kind ${kind} has no names for Kubernetes yet: they stand in custom-resources/definitions.ts`);
  return naming;
}
