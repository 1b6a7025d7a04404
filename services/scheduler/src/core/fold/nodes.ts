import type { Entry } from '#libs/kernel';
import type { FactOf, takenReport } from '#libs/contracts';
import { assignPool, putNode, reassignShared } from '../indexes.js';
import { nodeOf, type NodeState, type State } from '../state.js';
import { patchChange, patchTarget, patchLease, leftRollout, laterThan } from './patches.js';

/** Folds what is said of nodes. */
export function evolveNode(state: State, { sequence, readMs, fact }: Entry): void {
  switch (fact.type) {
    case 'node.joined':
    case 'node.changed':
      return present(state, fact, sequence);
    case 'node.left': {
      outdate(state, fact.node);
      // Should it come back, it is a node that joins: what this rollout wanted of it is over.
      const { change } = nodeOf(state, fact.node);
      patchTarget(state, change, fact.node, { left: true });
      const gone = {
        joined: false,
        silent: false,
        outOfService: '',
        taken: undefined,
        owed: '',
        change: '',
        desired: undefined,
        rendered: undefined,
        retry: undefined,
        escalated: '',
      } as const;
      putNode(state, assignPool(state, { ...nodeOf(state, fact.node), ...gone }), sequence);
      return reassignShared(state, sequence);
    }
    case 'node.silent':
      return patchNode(state, fact.node, sequence, { silent: true });
    case 'node.heard':
      return patchNode(state, fact.node, sequence, { silent: false, skippedBy: '' });
    case 'node.unavailable':
      return patchNode(state, fact.node, sequence, { outOfService: fact.because });
    case 'node.available':
      return patchNode(state, fact.node, sequence, { outOfService: '' });
    case 'node.taken':
      return patchNode(state, fact.node, sequence, {
        taken: { owner: fact.owner, reason: fact.reason, at: fact.at, sinceMs: readMs, forMs: fact.forMs },
      });
    case 'node.given':
      return patchNode(state, fact.node, sequence, { taken: undefined });
    case 'node.rendered':
      return rendered(state, fact, sequence);
    case 'node.reviewed':
      return reviewed(state, fact, sequence);
    case 'node.reported':
      return putNode(state, reported(state, fact), sequence);
    case 'node.owed': {
      patchTarget(state, fact.change, fact.node, { owed: fact.reason });
      const node = nodeOf(state, fact.node);
      const retry = fact.change === '' && node.lease === undefined ? laterThan(node, readMs) : node.retry;
      return patchNode(state, fact.node, sequence, { owed: fact.reason, retry });
    }
    case 'node.skipped':
      return patchNode(state, fact.node, sequence, { skippedBy: fact.by });
    case 'node.drained':
      return patchLease(state, fact.node, fact.lease, sequence, { drained: true });
    case 'node.drain.stopped':
      return patchLease(state, fact.node, fact.lease, sequence, { stopped: fact.outcome, stoppedBecause: fact.reason });
    case 'node.uncordoned':
      return patchLease(state, fact.node, fact.lease, sequence, { uncordoned: true });
    default:
      return;
  }
}

function patchNode(state: State, name: string, sequence: number, patch: Partial<NodeState>): void {
  putNode(state, { ...nodeOf(state, name), ...patch }, sequence);
}

function present(state: State, fact: FactOf<'node.joined' | 'node.changed'>, sequence: number): void {
  const node = nodeOf(state, fact.node);
  if (node.joined && !sameLabels(node.labels, fact.labels)) outdate(state, fact.node);
  const rejoined = fact.type === 'node.joined' && !node.joined;
  const base = rejoined
    ? { ...node, joined: true, silent: false, outOfService: '', taken: undefined, skippedBy: '' }
    : node;
  putNode(state, assignPool(state, { ...base, labels: fact.labels, capabilities: fact.capabilities }), sequence);
  reassignShared(state, sequence);
}

type Labels = Readonly<Record<string, string>>;
const sameLabels = (a: Labels, b: Labels): boolean =>
  JSON.stringify(Object.entries(a).sort()) === JSON.stringify(Object.entries(b).sort());

/** A rendering that was not started yet does not survive a relabel or a leave of a node that it touches; the merger makes another. A review of this one may still come. */
function outdate(state: State, node: string): void {
  for (const name of [...state.openChanges]) {
    const change = state.changes.get(name);
    if (change !== undefined && !change.started && change.targets[node] !== undefined)
      patchChange(state, name, { attempt: 0 });
  }
}

function rendered(state: State, fact: FactOf<'node.rendered'>, sequence: number): void {
  for (const change of fact.leaves) patchTarget(state, change, fact.node, { left: true });
  const node = nodeOf(state, fact.node);
  const left = fact.leaves.includes(node.change) ? leftRollout(node) : node;
  putNode(state, { ...left, rendered: { hash: fact.hash, recipe: fact.recipe } }, sequence);
}

function reviewed(state: State, fact: FactOf<'node.reviewed'>, sequence: number): void {
  const node = nodeOf(state, fact.node);
  if (node.rendered?.hash !== fact.hash) return;
  const desired = fact.fit ? { ...node.rendered, joining: node.report?.hash !== fact.hash } : undefined;
  putNode(
    state,
    { ...node, rendered: undefined, desired, unfit: fact.reasons, owed: fact.fit ? node.owed : '' },
    sequence,
  );
}

/** A node as a report says it is that was taken, alone or with the lease that it settles. */
export function reported(state: State, fact: NonNullable<ReturnType<typeof takenReport>>): NodeState {
  state.cursor.set(Math.max(state.cursor.get(), fact.reportSequence));
  const node = nodeOf(state, fact.node);
  const named = node.lease?.id === fact.lease && (node.lease.phase === 'settled' || node.lease.phase === 'uncordoning');
  const { incarnation, birth, seq, hash, lease, verdict, reason, restored, bootId, fresh } = fact;
  const report = {
    incarnation,
    birth,
    seq,
    hash,
    lease,
    verdict,
    reason,
    restored,
    bootId: bootId === '' ? (node.report?.bootId ?? '') : bootId,
    fresh,
  };
  const drifted = fact.report === 'drifted' ? fact.what : fact.report === 'applied' ? [] : node.drifted;
  const owed = node.change === '' && node.desired?.hash === hash ? '' : node.owed;
  const desired = node.desired?.hash === hash ? { ...node.desired, joining: false } : node.desired;
  return { ...node, report, drifted, owed, desired, lease: named ? { ...node.lease, answered: true } : node.lease };
}
