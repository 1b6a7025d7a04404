import {
  cordonAnnotationOf,
  CORDON_ANNOTATION,
  KEEP_CORDONED_ANNOTATION,
  nodeToken,
  UNCORDONED_ANNOTATION,
  type Fact,
} from '#libs/contracts';
import { parseDrain, treatmentOf } from '#libs/manifests';
import type { SimPod } from '../kubernetes/workloads.js';
import { Violation, type Oracle, type World } from '../world/world.js';

type LeaseGrant = Extract<Fact, { type: 'node.lease.granted' }>;
/** How long requests that follow the previous drain settings may still be in flight after a pool got new ones. */
const ON_ITS_WAY_MS = 30_000;

/**
 * I5 on the Nodes themselves: Sluice uncordons only what it cordoned, never what somebody wants to keep cordoned, and
 * never before the lease is to be given back. A node that is reported as drained has no pod left that had to go. In the
 * end, nothing stays cordoned by Sluice. Reads Nodes and pods, and the truth about who did what, which Sluice cannot
 * know.
 */
export function cordons(): Oracle {
  const leases = new Map<string, LeaseGrant>();
  const ending = new Set<string>();
  return {
    name: 'I5 cordons',
    onFact(world, fact) {
      if (fact.type === 'node.lease.granted' && fact.phase === 'draining') leases.set(fact.lease, fact);
      if (fact.type === 'node.lease.amended')
        leases.set(fact.lease, amended(leases.get(fact.lease) as LeaseGrant, fact));
      if (fact.type === 'node.lease.uncordoning') ending.add(fact.lease);
      const lease = fact.type === 'node.drained' ? leases.get(fact.lease) : undefined;
      if (lease !== undefined && world.cluster !== undefined) mustBeFree(world, lease);
    },
    onNodeWrite(_world, before, after, by) {
      if (by !== 'sluice') return;
      const gaveBack = after.annotations[UNCORDONED_ANNOTATION];
      if (gaveBack !== before.annotations[UNCORDONED_ANNOTATION] && !ending.has(gaveBack ?? ''))
        throw new Violation(`${before.name} is given back by ${gaveBack}, which is not to give it back yet`);
      if (!before.unschedulable || after.unschedulable) return;
      if (before.cordonedBy === 'person')
        throw new Violation(`${before.name} is uncordoned by Sluice, and a person had cordoned it`);
      if (before.annotations[KEEP_CORDONED_ANNOTATION] !== undefined)
        throw new Violation(`${before.name} is uncordoned by Sluice, and somebody wants it kept`);
    },
    atEnd(world) {
      for (const [name, node] of world.cluster?.nodes ?? []) {
        const view = world.bus.view('leases', nodeToken(name));
        if (view !== undefined && view.phase !== 'released') continue;
        if (node.annotations[CORDON_ANNOTATION] !== undefined || (node.unschedulable && node.cordonedBy === 'sluice'))
          throw new Violation(`${name} is left behind: ${JSON.stringify(node)}`);
      }
    },
  };
}

/** The lease with the amended drain settings of its pool. */
const amended = (
  granted: LeaseGrant,
  { drain, drainMs }: Extract<Fact, { type: 'node.lease.amended' }>,
): LeaseGrant => ({
  ...granted,
  drain,
  drainMs,
});

function mustBeFree(world: World, { node, lease, drain, actions }: LeaseGrant): void {
  const readMs = world.cluster?.saidDrained.get(lease)?.podsMs ?? -1;
  const policy = parseDrain(drain ?? {});
  const reboots = actions.some(({ kind }) => kind === 'reboot');
  const left = (world.cluster?.podsOn(node) ?? []).filter(
    (pod) =>
      pod.madeMs < readMs &&
      isEvictable(pod) &&
      (reboots || policy.only === undefined) &&
      treatmentOf(policy, pod).action !== 'skip',
  );
  if (left.length > 0)
    throw new Violation(
      `${node} is said to be drained for ${lease}, and ${left.map(({ name }) => name).join(', ')} were on it`,
    );
}

const isEvictable = ({ controller, mirror, finished }: SimPod): boolean =>
  controller !== 'DaemonSet' && !mirror && !finished;

/**
 * Pods are ended within their budgets, unless the pool said to force them and half of the time was over. Pods of the
 * node itself are never ended.
 */
export function podBudgets(): Oracle {
  interface Terms {
    readonly fact: LeaseGrant;
    readonly atMs: number;
    readonly before?: Terms;
  }
  const drains = new Map<string, Terms>();
  const isForced = ({ fact, atMs }: Terms, nowMs: number): boolean =>
    parseDrain(fact.drain ?? {}).onTimeout === 'force' && nowMs - atMs >= fact.drainMs / 2;
  return {
    name: 'pod budgets',
    onFact(world, fact) {
      if (fact.type === 'node.lease.granted' && fact.phase === 'draining')
        drains.set(fact.node, { fact, atMs: world.clock.nowMs });
      const before = fact.type === 'node.lease.amended' ? drains.get(fact.node) : undefined;
      if (fact.type === 'node.lease.amended' && before?.fact.lease === fact.lease)
        drains.set(fact.node, { fact: amended(before.fact, fact), atMs: world.clock.nowMs, before });
    },
    onPodEnd(world, pod, how) {
      const granted = drains.get(pod.on);
      if (granted === undefined) throw new Violation(`${pod.name} on ${pod.on} is to end, and nobody drains that`);
      const { nowMs } = world.clock;
      const holding =
        granted.before !== undefined && nowMs - granted.atMs < ON_ITS_WAY_MS ? [granted, granted.before] : [granted];
      if (!isEvictable(pod)) throw new Violation(`${pod.name} on ${pod.on} is to end, and does not have to`);
      if (holding.some((terms) => isForced(terms, nowMs))) return;
      if (
        pod.controller === undefined &&
        holding.every(({ fact }) => parseDrain(fact.drain ?? {}).unmanaged === 'block')
      )
        throw new Violation(`${pod.name} on ${pod.on} is to end, and nothing would make it again`);
      if (how === 'delete')
        throw new Violation(`${pod.name} on ${pod.on} is deleted by way of no budget, and the pool does not say so`);
    },
  };
}

/** In the end, Sluice knows the state of each Node. */
export const knownNodes: Oracle = {
  name: 'I1 known nodes',
  atEnd(world) {
    for (const [name, node] of world.cluster?.nodes ?? []) {
      const view = world.bus.view('nodes', nodeToken(name));
      if (view === undefined || view.state === 'gone') continue;
      // Computed here once more, so that a wrong inventory cannot agree with itself.
      const mark = cordonAnnotationOf(node.annotations);
      const isCordoned = node.unschedulable && (mark === undefined || mark.alreadyCordoned);
      const unavailable = [node.ready ? '' : 'NotReady', isCordoned ? 'cordoned' : ''].filter(Boolean).join(', ');
      if (view.uid !== node.uid || view.unavailable !== unavailable)
        throw new Violation(`${name} is known as ${view.uid} ${view.unavailable}, and is ${node.uid} ${unavailable}`);
    }
  },
};
