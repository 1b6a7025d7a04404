import { MOST_PACE_MS, nodeOfToken, nodeToken, type FactType, type NodeReport, type NodeView } from '#libs/contracts';
import {
  assertNever,
  decided,
  takeTouched,
  viewKey,
  type Answer,
  type Core,
  type Decision,
  type Entry,
  type Now,
  type ViewBody,
  type ViewKey,
} from '#libs/kernel';
import type { Input, InventoryDraft, Request } from './inputs.js';
import { compareNodes, isOrphan, isPremature, labelsOf } from './kubernetes.js';
import { blindPatienceMs, patienceMs } from './pace.js';
import { isLater, sameLabels, State, type NodeState, type Stamp } from './state.js';

/** How long a node may be unheard before it is silent; and who leads that long without a break may say so. */
export interface Settings {
  readonly silentAfterMs: number;
  /** How many heartbeats the whole fleet shall send, about; 0 (the default) for any number. */
  readonly heartbeatsPerSecond?: number;
  /** Nodes are known to Kubernetes too. */
  readonly kubernetes?: boolean;
}

const READS: readonly FactType[] = [
  'node.joined',
  'node.left',
  'node.changed',
  'node.silent',
  'node.heard',
  'node.reported',
  'node.unavailable',
  'node.available',
];

/**
 * The inventory: which nodes there are. What always holds after each of its batches:
 * 1. a node leaves only when somebody says so; silence is never a leave;
 * 2. of announcements of one node only a later one counts, by incarnation and sequence;
 * 3. silence is said only by a copy that has listened long enough itself;
 * 4. a node leaves because its Node object is gone only if it had one, and the API server was asked.
 */
export function inventoryCore(settings: Settings): Core<State, Input> {
  const ofSettings = (state: State): State =>
    Object.assign(state, { keepsAnnouncements: settings.kubernetes === true });
  return {
    name: 'inventory',
    version: 3,
    reads: READS,
    wantsTargets: false,
    initial: () => ofSettings(new State()),
    evolve,
    decide: (state, inputs, _gathered, now) => decide(state, inputs, now, settings),
    takeTouched,
    viewKeys: (state) => [...state.nodes.keys()].map((node) => viewKey('nodes', nodeToken(node))),
    view,
    dump: (state) => ({ nodes: [...state.nodes.values()], announced: [...state.announced.entries()] }),
    load: (dumped) => ofSettings(loaded(dumped as Dumped)),
  };
}

/** Notes a sign of life, outside the ledger. True when it is news: the node was taken for silent. `pacedMs`: what it was asked for, as its heartbeat says, or just now. */
export function hear(state: State, node: string, monotonicMs: number, at = '', pacedMs = 0): boolean {
  // Of what never joined nothing is kept: anybody may send under any name, and a join counts as heard.
  if (!state.nodes.has(node)) return false;
  state.heardAt.set(node, at);
  state.heardMs.set(node, monotonicMs);
  state.pacedMs.set(node, Math.min(pacedMs, MOST_PACE_MS));
  if (state.nodes.get(node)?.state !== 'silent') return false;
  state.heardAgain.set(node, true);
  return true;
}

function evolve(state: State, { fact, readMs }: Entry): void {
  switch (fact.type) {
    case 'node.joined':
    case 'node.changed': {
      const { node, labels, kubernetesLabels, capabilities, version, incarnation, birth, seq, at } = fact;
      const before = state.nodes.get(node);
      // Who joins was heard just now: its silence is counted from here, however long this copy has led.
      if (fact.type === 'node.joined') {
        state.heardMs.set(node, readMs);
        state.memo.nextSilentMs = undefined;
        state.heardAgain.delete(node);
      }
      const since = fact.type === 'node.joined' || before === undefined ? at : before.since;
      const now = fact.type === 'node.joined' || before === undefined ? 'ready' : before.state;
      const { unavailable, uid } =
        fact.type === 'node.joined' || before === undefined ? { unavailable: '', uid: '' } : before;
      return put(state, {
        node,
        state: now,
        labels,
        kubernetesLabels,
        capabilities,
        version,
        stamp: { incarnation, birth, seq },
        since,
        because: '',
        unavailable,
        uid,
      });
    }
    case 'node.left':
      state.heardAgain.delete(fact.node);
      return patch(state, fact.node, {
        state: 'gone',
        since: fact.at,
        because: fact.because,
        unavailable: '',
        uid: '',
      });
    case 'node.unavailable':
      return patch(state, fact.node, { unavailable: fact.because, uid: fact.uid });
    case 'node.available':
      return patch(state, fact.node, { unavailable: '', uid: fact.uid });
    case 'node.silent':
      // What this copy heard was before that, or it read the join only now.
      state.heardMs.delete(fact.node);
      return patch(state, fact.node, {
        state: 'silent',
        since: fact.at,
        because: fact.lastHeard === '' ? '' : `last heard ${fact.lastHeard}`,
      });
    case 'node.heard':
      state.memo.nextSilentMs = undefined;
      state.heardAgain.delete(fact.node);
      return patch(state, fact.node, { state: 'ready', since: fact.at, because: '' });
    case 'node.reported': {
      const { incarnation, birth, seq } = fact;
      if (fact.report === 'announced') state.announced.set(fact.node, { incarnation, birth, seq });
      return;
    }
    default:
      return;
  }
}

function put(state: State, node: NodeState): void {
  state.nodes.set(node.node, node);
  state.memo.toCompare.add(node.node);
  state.touched.add(viewKey('nodes', nodeToken(node.node)));
}

function patch(state: State, name: string, change: Partial<NodeState>): void {
  const node = state.nodes.get(name);
  if (node !== undefined) put(state, { ...node, ...change });
}

function decide(state: State, inputs: readonly Input[], now: Now, settings: Settings): Decision<Input, never> {
  return decided<State, Input, never>(state, now, evolve, (draft) => {
    for (const input of inputs) {
      if (draft.full) draft.held.add(input);
      else if (input.type === 'announced') announced(draft, input.report);
      else draft.answers.set(input, answer(draft, input.request));
    }
    compareNodes(draft, announced);
    sweep(draft, settings);
  });
}

/** Takes what a node says of itself. */
function announced(draft: InventoryDraft, report: NodeReport): void {
  const { node, capabilities, version, incarnation, birth, seq, fresh } = report;
  const known = draft.state.nodes.get(node);
  if (known !== undefined && !isLater(report, known.stamp)) return;
  // One that came late: a later one was taken, though what it said was known already.
  const taken = draft.state.announced.get(node);
  if (taken !== undefined && isLater(taken, report)) return;
  const labels = labelsOf(draft.state, report);
  const body = { node, ...labels, capabilities, version, incarnation, birth, seq };
  // It was said to have left, and joins when its Node object is there again.
  if (isOrphan(draft.state, node) || isPremature(draft.state, node)) return;
  if (known === undefined || known.state === 'gone') return draft.emit({ type: 'node.joined', ...body, fresh });
  if (!sameContent(known, { ...labels, capabilities })) draft.emit({ type: 'node.changed', ...body });
}

const sameContent = (known: Content, said: Content): boolean =>
  sameLabels(known.labels, said.labels) &&
  JSON.stringify([...known.capabilities].sort()) === JSON.stringify([...said.capabilities].sort());
type Content = Pick<NodeState, 'labels' | 'capabilities'>;

/** Says who is silent and who is back, as far as this copy has listened itself. */
function sweep(draft: InventoryDraft, settings: Settings): void {
  const { state, now } = draft;
  if (now.leadingSinceMs === undefined) return;
  greet(draft, settings);
  // Ten thousand nodes need not be looked at again for every fact that comes by.
  if (state.memo.nextSilentMs === undefined || now.monotonicMs >= state.memo.nextSilentMs)
    state.memo.nextSilentMs = missNodes(draft, settings, now.leadingSinceMs);
  if (state.memo.nextSilentMs !== undefined && state.memo.nextSilentMs < Infinity)
    draft.wakeAt(state.memo.nextSilentMs);
}

function greet(draft: InventoryDraft, { silentAfterMs }: Settings): void {
  const { state, now } = draft;
  for (const name of [...state.heardAgain.keys()].sort()) {
    if (draft.full) return;
    const heardMs = state.heardMs.get(name);
    const isBack =
      state.nodes.get(name)?.state === 'silent' &&
      heardMs !== undefined &&
      now.monotonicMs - heardMs < patienceMs(state.pacedMs.get(name) ?? 0, silentAfterMs);
    if (isBack) draft.emit({ type: 'node.heard', node: name });
  }
}

/** When the next one can become silent; undefined when some were missed now: that is not so before it is in the ledger. */
function missNodes(
  draft: InventoryDraft,
  { silentAfterMs, heartbeatsPerSecond = 0 }: Settings,
  leadingSinceMs: number,
): number | undefined {
  const { state, now } = draft;
  const nodes = [...state.nodes.values()];
  state.memo.present = nodes.filter((node) => node.state !== 'gone').length;
  const blindMs = blindPatienceMs(state, silentAfterMs, heartbeatsPerSecond);
  // Not beyond this: who was asked to beat more often, or is heard for the first time, is silent sooner than was seen here.
  let next: number | undefined = nodes.some((node) => node.state === 'ready')
    ? now.monotonicMs + silentAfterMs
    : Infinity;
  for (const { node, state: standing } of nodes) {
    if (draft.full) return undefined;
    if (standing !== 'ready') continue;
    const heardMs = state.heardMs.get(node);
    const pacedMs = state.pacedMs.get(node);
    const isHeard = heardMs !== undefined && heardMs >= leadingSinceMs && pacedMs !== undefined;
    const patience = isHeard ? patienceMs(pacedMs, silentAfterMs) : blindMs;
    const deadlineMs = Math.max(heardMs ?? leadingSinceMs, leadingSinceMs) + patience;
    if (now.monotonicMs < deadlineMs) {
      if (next !== undefined) next = Math.min(next, deadlineMs);
      continue;
    }
    draft.emit({ type: 'node.silent', node, lastHeard: heardMs === undefined ? '' : (state.heardAt.get(node) ?? '') });
    next = undefined;
  }
  return next;
}

function answer(draft: InventoryDraft, request: Request): Answer {
  switch (request.op) {
    case 'list':
      return list(draft.state, request);
    case 'get': {
      const node = draft.state.nodes.get(request.node);
      return node === undefined ? unknown(request.node) : { ok: true, body: nodeView(node) };
    }
    case 'remove': {
      const node = draft.state.nodes.get(request.node);
      if (node === undefined) return unknown(request.node);
      if (node.state !== 'gone')
        draft.emit({
          type: 'node.left',
          node: request.node,
          because: 'removed',
          by: request.by,
          reason: request.reason,
        });
      return { ok: true, body: { node: request.node, removed: true } };
    }
    default:
      return assertNever(request);
  }
}

const unknown = (node: string): Answer => ({ ok: false, code: 'not-found', message: `no node ${node} is known` });

function list(state: State, { cursor, limit }: { readonly cursor: string; readonly limit: number }): Answer {
  const names = [...state.nodes.values()]
    .filter((node) => node.state !== 'gone')
    .map((node) => node.node)
    .sort();
  const from = cursor === '' ? 0 : names.findIndex((name) => name > cursor);
  const shown = from < 0 ? [] : names.slice(from, from + limit);
  const last = shown.at(-1);
  const next = last !== undefined && from + limit < names.length ? { next: last } : {};
  return { ok: true, body: { nodes: shown.map((name) => nodeView(state.nodes.get(name))), ...next } };
}

function view(state: State, { key }: ViewKey): ViewBody | undefined {
  return nodeView(state.nodes.get(nodeOfToken(key)));
}

function nodeView(node: NodeState | undefined): Omit<NodeView, 'ledger'> | undefined {
  if (node === undefined) return undefined;
  const { stamp: _, kubernetesLabels: __, ...shown } = node;
  return shown;
}

interface Dumped {
  readonly nodes: readonly NodeState[];
  readonly announced: readonly (readonly [string, Stamp])[];
}

function loaded({ nodes, announced }: Dumped): State {
  const state = new State();
  for (const [node, stamp] of announced) state.announced.set(node, stamp);
  for (const node of nodes) put(state, node);
  state.touched.clear();
  return state;
}
