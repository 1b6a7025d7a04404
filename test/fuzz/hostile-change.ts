import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Chance } from '../simulation/world/chance.js';
import { manifest, selecting, type Manifest } from '../e2e/manifests.js';
import { clearTree, hostileManifests, pictureOf, plantTree, treeOf } from './doors/hostile-trees.js';
import type { Stage } from './stage.js';

const FINAL = ['succeeded', 'reverted', 'superseded'];

/**
 * Plants trees with links, owners and modes on the nodes of one pool, and publishes a change that may cause trouble
 * there. In any case, the change ends with a reason, nothing outside the root of a node changes, and after a rollback
 * or a deletion every node has its previous content.
 */
export async function playHostileChange(stage: Stage, seed: number): Promise<readonly string[]> {
  const { fleet } = stage;
  const chance = new Chance(seed, 'hostile');
  const { pool, nodes } = chance.pick(fleet.pools);
  const outside = join(fleet.data, 'outside');
  mkdirSync(outside, { recursive: true });
  writeFileSync(join(outside, 'canary'), 'nobody may touch this\n');
  for (const node of nodes) plantTree(chance, fleet.folders.root(node), outside);
  const seen = (): Readonly<Record<string, readonly string[]>> => ({
    outside: pictureOf(outside),
    ...Object.fromEntries(nodes.map((node) => [node, treeOf(fleet.folders.root(node))])),
  });
  const before = seen();
  const manifests: readonly Manifest[] = [
    ...hostileManifests(chance, pool),
    ...(chance.flip(0.4) ? [shutGate(pool)] : []),
  ];
  const complaints = await publishAndUndo(stage, manifests).catch((error: unknown) => [(error as Error).message]);
  const after = seen();
  const changed = Object.keys(before).flatMap((where) => differences(where, before[where] ?? [], after[where] ?? []));
  for (const node of nodes) clearTree(fleet.folders.root(node));
  rmSync(outside, { recursive: true, force: true });
  const all = [...complaints, ...changed];
  return all.length === 0 ? [] : [...all, `it was ${JSON.stringify(manifests).slice(0, 3_000)}`];
}

/** A probe that fails, so that the change is rolled back. */
const shutGate = (pool: string): Manifest =>
  manifest('Probe', 'shut-gate', {
    nodeSelector: selecting(pool),
    file: { path: '/no/gate', matches: 'open' },
    timeout: '1s',
    retries: 0,
  });

async function publishAndUndo({ fleet }: Stage, manifests: readonly Manifest[]): Promise<readonly string[]> {
  const change = await fleet.apply(...manifests);
  const { phase, outcome, reason, reasons } = await fleet.ended(change);
  if (phase === 'rejected')
    return reasons.every(({ message }) => message !== '') && reasons.length > 0
      ? []
      : [`${change} is rejected without a reason`];
  await fleet.when('rollouts', change, (view) => FINAL.includes(view.phase));
  if (phase === 'ended') return reason === '' ? [`${change} ends ${outcome} without a reason`] : [];
  const names = manifests.map(({ kind, metadata: { name } }) => ({ kind, name }));
  const deletion = await fleet.publish({ delete: names });
  const end = await fleet.ended(deletion);
  if (end.phase !== 'committed')
    return [`${deletion}, which deletes ${change}, ends ${end.phase}: ${end.reason} ${JSON.stringify(end.reasons)}`];
  await fleet.when('rollouts', deletion, (view) => FINAL.includes(view.phase));
  return [];
}

function differences(where: string, before: readonly string[], after: readonly string[]): readonly string[] {
  const lost = before.filter((line) => !after.includes(line)).map((line) => `  - ${line}`);
  const found = after.filter((line) => !before.includes(line)).map((line) => `  + ${line}`);
  return lost.length + found.length === 0 ? [] : [`${where} is not what it was:\n${[...lost, ...found].join('\n')}`];
}
