import { bgpPeering } from './bgp-peering.js';
import { boundValues } from './cluster/bindings.js';
import { fluxSync } from './cluster/flux-sync.js';
import { kubeObjects } from './cluster/kube-objects.js';
import { directory } from './directory.js';
import { disruptionPolicy } from './disruption-policy.js';
import { exec } from './exec.js';
import { file } from './file.js';
import { compositeKinds, functionKinds } from './functions/function-specs.js';
import { fleetChange } from './fleet-change.js';
import { kernelArguments } from './kernel-arguments.js';
import type { Kind } from './kind.js';
import { layer2Network } from './layer2-network.js';
import { link } from './link.js';
import { pool } from './pool.js';
import { probe } from './probe.js';
import { resolvedName } from './resolved-name.js';
import { rolloutPolicy } from './rollout-policy.js';
import { routingTable } from './routing-table.js';
import { sshKeys } from './ssh-keys.js';
import { sysctl } from './sysctl.js';
import { systemdUnit } from './systemd-unit.js';
import { vrf } from './vrf.js';

/** All kinds. To add one, add a file next to this one and a line here. */
export const KINDS: readonly Kind[] = [
  file,
  directory,
  link,
  probe,
  exec,
  systemdUnit,
  sysctl,
  kernelArguments,
  sshKeys,
  vrf,
  layer2Network,
  routingTable,
  bgpPeering,
  ...functionKinds,
  kubeObjects,
  fluxSync,
  ...compositeKinds,
  resolvedName,
  boundValues,
  fleetChange,
  pool,
  disruptionPolicy,
  rolloutPolicy,
];

/** The kind with that name; undefined if it is unknown. */
export const kindOf = (name: string): Kind | undefined => BY_NAME.get(name);

/** Whether fragments of this kind control how to change, and not what a node should have. */
export const isPolicyKind = (name: string): boolean => BY_NAME.get(name)?.role === 'policy';

/** Whether fragments of this kind are rendered into the configs of nodes. Unknown kinds count as that. */
export const isNodeKind = (name: string): boolean => {
  const role = BY_NAME.get(name)?.role;
  return role !== 'policy' && role !== 'input';
};

/** Whether fragments of this kind claim the path `spec.path` on the node. */
export const ownsPath = (name: string): boolean => BY_NAME.get(name)?.ownsPath === true;

/** What an entry claims besides its own `path`: names that no other fragment of the node may claim. */
export const claimsOf = (entry: {
  readonly kind: string;
  readonly name: string;
  readonly spec: Readonly<Record<string, unknown>>;
}): readonly string[] => BY_NAME.get(entry.kind)?.claims?.(entry.spec, entry.name) ?? [];

/** The fields of a spec without templates. */
export const literalFields = (kind: string, spec: Readonly<Record<string, unknown>>): readonly string[] =>
  BY_NAME.get(kind)?.literal?.(spec) ?? [];

const BY_NAME: ReadonlyMap<string, Kind> = new Map(KINDS.map((kind) => [kind.name, kind]));
