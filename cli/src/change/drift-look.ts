import type { FleetClient } from '#libs/client';
import { isDriftOf, isOverwritten, refusedDrift, type PlanAnswer, type PlannedNode } from '#libs/contracts';
import { ownsPath } from '#libs/manifests';
import type { Session } from '../connection/session.js';
import { askNode, MOST_ASKED, pathOf } from './look-first.js';

/**
 * The plan, after the nodes were asked about the drift that it corrects. They report drift every minute: since then,
 * somebody may have put something in the way that they refuse to replace. A node that does not answer is taken at its
 * last report.
 */
export async function withDriftLooked(session: Session, planned: PlanAnswer): Promise<PlanAnswer> {
  const drifted = planned.nodes.filter(({ drift = [], deferred }) => drift.length > 0 && deferred === undefined);
  if (drifted.length === 0) return planned;
  const fleet = await session.fleet();
  const looked = await Promise.all(drifted.slice(0, MOST_ASKED).map((node) => lookAt(fleet, node)));
  const byName = new Map(looked.map((node) => [node.node, node]));
  return { ...planned, nodes: planned.nodes.map((node) => byName.get(node.node) ?? node) };
}

async function lookAt(fleet: FleetClient, planned: PlannedNode): Promise<PlannedNode> {
  const { node, from, changed, drift = [], leavesDrift = [] } = planned;
  const config = await fleet.config(node, from);
  // What the change touches is looked at as the change wants it.
  const entries = (config?.fragments ?? []).filter(
    (entry) =>
      ownsPath(entry.kind) &&
      !changed.includes(pathOf(entry)) &&
      drift.some((difference) => isDriftOf(difference, pathOf(entry))),
  );
  const found = entries.length === 0 ? [] : ((await askNode(fleet, node, entries)) ?? []);
  const refusals = found.filter(({ refused }) => refused !== '');
  const whyNot = (difference: string): string | undefined =>
    refusals.find(({ path }) => isDriftOf(difference, path))?.refused;
  const refused = drift.flatMap((difference) => {
    const reason = whyNot(difference);
    return reason === undefined ? [] : [refusedDrift(difference, reason)];
  });
  if (refused.length === 0) return planned;
  const corrected = drift.filter((difference) => whyNot(difference) === undefined);
  const { drift: _, overwritesDrift: __, afterCommit, ...rest } = planned;
  const left = { ...rest, leavesDrift: [...leavesDrift, ...refused] };
  // It would only have been repaired.
  if (corrected.length === 0 && planned.from === planned.to) return { ...left, deferred: 'refused' };
  return {
    ...left,
    ...(afterCommit === undefined ? {} : { afterCommit }),
    ...(corrected.length > 0 ? { drift: corrected } : {}),
    ...(corrected.some(isOverwritten) ? { overwritesDrift: true } : {}),
  };
}
