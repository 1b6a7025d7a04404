import type { Schema } from '../shape/checked.js';
import { aboutOf, descriptionOf } from '../shape/description.js';
import { FRAGMENT_NAME } from '../fragment-name.js';
import { isNodeKind, KINDS } from '../kinds/registry.js';
import type { Kind } from '../kinds/kind.js';
import { ManifestHead, Metadata } from '../manifest.js';
import { API_VERSION } from '../written-manifest.js';
import { FRAGMENT_STATUS, POOL_STATUS, ROLLOUT_STATUS } from './status.js';
import { structuralOf } from './structural.js';

/** The group and version of all kinds, as paths of an API server name them. */
export const [API_GROUP, API_GROUP_VERSION] = API_VERSION.split('/') as [string, string];
/** The kind that shows a rollout. Users do not publish it. */
export const ROLLOUT_KIND = 'Rollout';

/** As in `kubectl get -o custom-columns`, with the type if it is not text; `wide`: only with `-o wide`. */
type Column = `${string}:.${string}`;

/** Plural, short name, and the columns that distinguish objects. */
type Naming = readonly [plural: string, short: string, ...columns: readonly Column[]];

/** Short names must be unique, because all kinds in a cluster share a namespace for them. */
const NAMES: Readonly<Record<string, Naming>> = {
  File: ['files', 'sfile', 'Path:.spec.path'],
  Directory: ['directories', 'sdir', 'Path:.spec.path'],
  Link: ['links', 'slink', 'Path:.spec.path', 'Target:.spec.target'],
  Probe: ['probes', 'sprobe'],
  Exec: ['execs', 'sexec'],
  SystemdUnit: ['systemdunits', 'sunit', 'Unit:.spec.name'],
  Sysctl: ['sysctls', 'ssysctl', 'Key:.spec.key', 'Value:.spec.value'],
  KernelArguments: ['kernelarguments', 'kargs', 'Arguments:.spec.arguments'],
  SshKeys: ['sshkeys', 'skeys', 'User:.spec.user'],
  Vrf: ['vrfs', 'svrf', 'VRF:.spec.vrf', 'VNI:.spec.vni:integer'],
  Layer2Network: ['layer2networks', 'sl2net', 'VLAN:.spec.id:integer', 'VNI:.spec.vni:integer'],
  RoutingTable: ['routingtables', 'srtable', 'Table:.spec.tableId:integer'],
  BgpPeering: ['bgppeerings', 'sbgp', 'Network:.spec.network', 'Remote-AS:.spec.remoteAs:integer'],
  Mwan3Policy: ['mwan3policies', 'smwpol'],
  Mwan3Rule: ['mwan3rules', 'smwrule', 'Policy:.spec.policy'],
  FirewallZone: ['firewallzones', 'sfwzone', 'Networks:.spec.network'],
  FirewallRule: ['firewallrules', 'sfwrule', 'From:.spec.src', 'To:.spec.dest', 'Target:.spec.target'],
  FirewallSNAT: ['firewallsnats', 'sfwsnat', 'To:.spec.dest', 'Sender:.spec.src_dip'],
  FirewallDNAT: ['firewalldnats', 'sfwdnat', 'From:.spec.src', 'Receiver:.spec.dest_ip'],
  FirewallForwarding: ['firewallforwardings', 'sfwfwd', 'From:.spec.src', 'To:.spec.dest'],
  IpsecProposal: ['ipsecproposals', 'sipprop', 'Encryption:.spec.encryption_algorithm', 'Hash:.spec.hash_algorithm'],
  IpsecHost: ['ipsechosts', 'siphost', 'Remote:.spec.remote'],
  IpsecSite: ['ipsecsites', 'sipsite', 'Remote:.spec.remote'],
  CNFNAT: ['cnfnats', 'scnfnat', 'Target:.spec.target'],
  CNFRoute: ['cnfroutes', 'scnfroute', 'Destination:.spec.dst', 'Gateway:.spec.gw', 'Device:.spec.dev'],
  CNFRouteRule: ['cnfrouterules', 'scnfrrule', 'Source:.spec.src', 'Destination:.spec.dst', 'Table:.spec.table'],
  NetworkFirewallRule: ['networkfirewallrules', 'snfwrule', 'From:.spec.src', 'To:.spec.dest', 'Target:.spec.target'],
  SdewanApplication: ['sdewanapplications', 'ssdapp', 'Addresses:.spec.iplist'],
  KubeObjects: ['kubeobjects', 'skobj'],
  FluxSync: ['fluxsyncs', 'sflux', 'Git:.spec.git.commit', 'OCI:.spec.oci.digest', 'Path:.spec.path'],
  CNFService: ['cnfservices', 'scnfsvc', 'Service:.spec.fullname', 'Port:.spec.dport'],
  CNFLocalService: ['cnflocalservices', 'scnflsvc', 'Local:.spec.localservice', 'Remote:.spec.remoteservice'],
  CNFHubSite: ['cnfhubsites', 'scnfhub', 'Type:.spec.type', 'Site:.spec.site', 'Subnet:.spec.subnet'],
  ResolvedName: ['resolvednames', 'srname', 'Addresses:.spec.addresses'],
  BoundValues: ['boundvalues', 'sbound'],
  FleetChange: ['fleetchanges', 'sfleet'],
  Pool: [
    'pools',
    'spool',
    'Max-Unavailable:.spec.maxUnavailable',
    'Members:.status.members:integer',
    'Budget:.status.budget:integer',
    'Unavailable:.status.unavailable:integer',
    'Waiting:.status.waiting:integer',
    'Used-By:.status.usedBy:wide',
  ],
  DisruptionPolicy: ['disruptionpolicies', 'dispol'],
  RolloutPolicy: ['rolloutpolicies', 'ropol', 'Max-Failures:.spec.maxFailures:integer'],
  [ROLLOUT_KIND]: [
    'rollouts',
    'srollout',
    'Phase:.status.phase',
    'Progress:.status.progress',
    'Failed:.status.failed:integer',
    'Deferred:.status.deferred:integer',
    'Blocked:.status.blocked:integer',
    'Paused:.status.paused:boolean',
    'Source:.status.source',
    'Message:.status.message:wide',
  ],
};

const STATE_COLUMNS: readonly Column[] = [
  'Phase:.status.phase',
  'Change:.status.change',
  'Nodes:.status.nodes:integer',
  'Applied:.status.applied:integer',
];
const AGE_COLUMN: Column = 'Age:.metadata.creationTimestamp:date';
const LAST_COLUMN: Column = 'Message:.status.message:wide';

/** The path segment of a kind's objects: `files`. Throws if the kind has none. */
export function pluralOf(kind: string): string {
  return namingOf(kind)[0];
}

/** The CustomResourceDefinitions of every kind, and that of rollouts, by the name of their file. */
export const customResourceDefinitions = (): Readonly<Record<string, Schema>> =>
  Object.fromEntries(
    [...KINDS.map(definitionOf), rolloutDefinition()].map((one) => [`${API_GROUP}_${one.spec.names.plural}.yaml`, one]),
  );

function definitionOf(kind: Kind) {
  const [, , ...columns] = namingOf(kind.name);
  const reserved = (kind.reservedNames ?? []).map((name) => ({
    rule: `self.metadata.name != '${name}'`,
    message: `a ${kind.name} cannot be named ${name}`,
  }));
  return definition(
    kind.name,
    aboutOf(kind.spec) ?? '',
    kind.name === 'Pool'
      ? [...columns, ...STATE_COLUMNS.slice(0, 2), LAST_COLUMN]
      : [...columns, ...STATE_COLUMNS, LAST_COLUMN],
    {
      // Kubernetes also allows names with more than 63 characters between two dots.
      metadata: {
        type: 'object',
        properties: {
          name: {
            description: descriptionOf(Metadata, 'name'),
            type: 'string',
            ...(kind.nameForm ?? FRAGMENT_NAME).schema,
          },
        },
      },
      spec: { description: descriptionOf(ManifestHead, 'spec'), ...structuralOf(kind.spec, isNodeKind(kind.name)) },
      status: kind.name === 'Pool' ? POOL_STATUS : FRAGMENT_STATUS,
    },
    ['spec'],
    reserved,
  );
}

const rolloutDefinition = () =>
  definition(
    ROLLOUT_KIND,
    'Shows the rollout of one change. The gateway creates and updates it.',
    namingOf(ROLLOUT_KIND).slice(2) as readonly Column[],
    {
      metadata: { type: 'object' },
      spec: {
        description: descriptionOf(ManifestHead, 'spec'),
        type: 'object',
        properties: {
          paused: {
            type: 'boolean',
            description: '`true` pauses the rollout, `false` resumes it. Pauses by other means, such as the CLI, stay.',
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
  description: string,
  columns: readonly Column[],
  parts: Readonly<Record<string, Schema>>,
  required: readonly string[],
  expressions: readonly object[],
) {
  const [plural, short] = namingOf(kind);
  const schema = {
    description,
    type: 'object',
    ...(required.length === 0 ? {} : { required }),
    properties: {
      apiVersion: { description: descriptionOf(ManifestHead, 'apiVersion'), type: 'string' },
      kind: { description: descriptionOf(ManifestHead, 'kind'), type: 'string' },
      ...parts,
    },
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
          additionalPrinterColumns: [...columns, AGE_COLUMN].map(printerColumn),
        },
      ],
    },
  };
}

function printerColumn(column: Column): Schema {
  const [name, jsonPath, ...more] = column.split(':');
  const type = more.find((one) => one !== 'wide') ?? 'string';
  return { name, type, jsonPath, ...(more.includes('wide') ? { priority: 1 } : {}) };
}

function namingOf(kind: string): Naming {
  const naming = NAMES[kind];
  if (naming === undefined)
    throw new Error(`the kind ${kind} has no names for Kubernetes: add them to custom-resources/definitions.ts`);
  return naming;
}
