import {
  isLaterReport,
  MOST_PACE_MS,
  nodeOfToken,
  nodeToken,
  type FactOf,
  type NodeReport,
  type NodeView,
  type ReportStamp,
} from '#libs/contracts';
import {
  answered,
  assertNever,
  decided,
  folding,
  pageOf,
  refused,
  takeTouched,
  viewKey,
  type Answer,
  type Core,
  type Decision,
  type FactTable,
  type Now,
  type ViewBody,
  type ViewKey,
} from '#libs/engine';
import { sameLabels } from '#libs/manifests';
import { forgetIncarnation, noteIncarnation, refusedAnnouncement } from './incarnations.js';
import type { Input, InventoryDraft, Request } from './inputs.js';
import { bodyOf, compareNodes, emitJoined, isOrphan, isPremature } from './kubernetes.js';
import { setLabels } from './labels.js';
import { blindPatienceMs, patienceMs } from './pace.js';
import { State, type Memory, type NodeState } from './state.js';

/**
 * How long a node may send neither heartbeats nor reports before it is silent. Only a leader that has listened this
 * long may decide it.
 */
export interface Settings {
  readonly silentAfterMs: number;
  /** About how many heartbeats per second the whole fleet should send; absent or 0: no limit. */
  readonly heartbeatsPerSecond?: number;
  /** Node objects are also read from Kubernetes. */
  readonly kubernetes?: boolean;
}

/**
 * The inventory tracks which nodes exist. Invariants after each of its batches:
 * 1. a node leaves only if a person or Kubernetes says so; a silent node has not left;
 * 2. an announcement counts only if it is later than the last one, by incarnation and sequence, and not much later;
 * 3. only a copy that has listened long enough itself marks a node as silent;
 * 4. a missing Node object makes a node leave only if it had one, and the API server has answered.
 */
export function inventoryCore(settings: Settings): Core<State, Input> {
  const ofSettings = (state: State): State =>
    Object.assign(state, { keepsAnnouncements: settings.kubernetes === true });
  return {
    name: 'inventory',
    version: 6,
    migrations: { 3: withoutEmpty, 4: withoutSetLabels, 5: withoutIncarnations },
    reads,
    wantsTargets: false,
    initial: () => ofSettings(new State()),
    evolve,
    decide: (state, inputs, _gathered, now) => decide(state, inputs, now, settings),
    remember: (state, memory) => remember(state, memory as Memory),
    takeTouched,
    viewKeys: (state) => [...state.nodes.keys()].map((node) => viewKey('nodes', nodeToken(node))),
    view,
    dump: (state) => ({
      nodes: [...state.nodes.values()],
      announced: [...state.announced.entries()],
      incarnations: [...state.incarnations.entries()],
    }),
    load: (dumped) => ofSettings(loaded(dumped as Snapshot)),
  };
}

/**
 * Records a heartbeat, outside the ledger. Returns true if the node was silent. `pacedMs`: the interval that the node
 * was asked to use, according to its heartbeat or to a request that was just sent.
 */
export function hear(state: State, node: string, monotonicMs: number, at?: string, pacedMs = 0): boolean {
  if (state.nodes.has(node)) state.pacedMs.set(node, Math.min(pacedMs, MOST_PACE_MS));
  return hearReport(state, node, monotonicMs, at);
}

/** Records that a node has sent a report just now. It is alive, even if its heartbeats are lost. */
export function hearReport(state: State, node: string, monotonicMs: number, at?: string): boolean {
  // Ignore nodes that never joined: anybody may send under any name, and a join counts as a heartbeat.
  if (!state.nodes.has(node)) return false;
  state.heardAt.set(node, at);
  state.heardMs.set(node, monotonicMs);
  if (state.nodes.get(node)?.state !== 'silent') return false;
  state.heardAgain.set(node, true);
  return true;
}

/** How each fact changes the fold of the inventory. */
const FACTS: FactTable<State> = {
  'node.joined': (state, fact, { readMs }) => {
    // A join counts as a heartbeat: the silence of the node counts from here, no matter how long this copy has led.
    state.heardMs.set(fact.node, readMs);
    state.memo.nextSilentMs.set(undefined);
    state.heardAgain.delete(fact.node);
    put(state, { ...announcedBy(fact), setLabels: {}, hiddenLabels: {}, ...JOINED, since: fact.at });
  },
  'node.changed': (state, fact) =>
    put(state, {
      ...JOINED,
      since: fact.at,
      ...state.nodes.get(fact.node),
      ...announcedBy(fact),
      setLabels: fact.setLabels,
      hiddenLabels: fact.hiddenLabels,
      because: undefined,
    }),
  'node.left': (state, { node, at: since, because }) => {
    state.heardAgain.delete(node);
    const stamp = because === 'removed' && forgetIncarnation(state, node) ? { stamp: NO_STAMP } : {};
    patch(state, node, { state: 'gone', since, because, unavailable: undefined, uid: undefined, ...stamp });
  },
  'node.unavailable': (state, { node, because, uid }) => patch(state, node, { unavailable: because, uid }),
  'node.available': (state, { node, uid }) => patch(state, node, { unavailable: undefined, uid }),
  'node.silent': (state, { node, at: since, lastHeard }) => {
    // What this copy heard before is older than this, or it has only now read the join.
    state.heardMs.delete(node);
    patch(state, node, { state: 'silent', since, because: lastHeard === '' ? undefined : `last heard ${lastHeard}` });
  },
  'node.heard': (state, { node, at: since }) => {
    state.memo.nextSilentMs.set(undefined);
    state.heardAgain.delete(node);
    patch(state, node, { state: 'ready', since, because: undefined });
  },
  'node.reported': (state, fact) => {
    const { node, report, incarnation, nonce, seq } = fact;
    if (report === 'announced') state.announced.set(node, { incarnation, nonce, seq });
    noteIncarnation(state, fact);
  },
  'node.lease.settled': noteIncarnation,
};

const { reads, evolve } = folding(FACTS);

const NO_STAMP: ReportStamp = { incarnation: 0, nonce: 0, seq: 0 };
const JOINED = { state: 'ready', because: undefined, unavailable: undefined, uid: undefined } as const;

function announcedBy(fact: FactOf<'node.joined' | 'node.changed'>) {
  const { node, labels, kubernetesLabels, capabilities, version, incarnation, nonce, seq } = fact;
  return { node, labels, kubernetesLabels, capabilities, version, stamp: { incarnation, nonce, seq } };
}

function put(state: State, node: NodeState): void {
  state.nodes.set(node.node, node);
  state.memo.toCompare.set(node.node, true);
  state.touched.add(viewKey('nodes', nodeToken(node.node)));
}

function patch(state: State, name: string, change: Partial<NodeState>): void {
  const node = state.nodes.get(name);
  if (node !== undefined) put(state, { ...node, ...change });
}

function decide(state: State, inputs: readonly Input[], now: Now, settings: Settings): Decision<Input, never> {
  let compared: Memory['compared'] = [];
  let silence: Memory['silence'];
  const decision = decided<State, Input, never>(state, now, evolve, (draft) => {
    for (const input of inputs) {
      if (draft.full) draft.waiting.add(input);
      else if (input.type === 'announced') {
        const refusal = refusedAnnouncement(draft.state, input.report);
        if (refusal === undefined) announced(draft, input.report);
        else draft.answers.set(input, refused(...refusal));
      } else draft.answers.set(input, answer(draft, input.request));
    }
    compared = compareNodes(draft, announced);
    silence = sweep(draft, settings);
  });
  return { ...decision, memory: { compared, silence } satisfies Memory };
}

function remember({ memo }: State, { compared, silence }: Memory): void {
  for (const name of compared) memo.toCompare.delete(name);
  if (silence === undefined) return;
  memo.nextSilentMs.set(silence.nextMs);
  memo.present = silence.present;
}

/** Handles the announcement of a node. */
function announced(draft: InventoryDraft, report: NodeReport): void {
  const { node } = report;
  const current = draft.state.nodes.get(node);
  if (current !== undefined && !isLaterReport(report, current.stamp)) return;
  // A late announcement: a later one was already handled, even if it contained nothing new.
  const taken = draft.state.announced.get(node);
  if (taken !== undefined && isLaterReport(taken, report)) return;
  // It has left, and joins again when its Node object exists again.
  if (isOrphan(draft.state, node) || isPremature(draft.state, node)) return;
  if (current === undefined || current.state === 'gone') {
    // A target joins when its applier can use it. Then it announces itself again.
    if (report.unavailable === undefined) emitJoined(draft, report);
    return;
  }
  const body = bodyOf(draft.state, report);
  if (!sameContent(current, body)) draft.emit({ type: 'node.changed', ...body, by: '' });
}

const sameContent = (before: Content, report: Content): boolean =>
  sameLabels(before.labels, report.labels) &&
  sameLabels(before.hiddenLabels, report.hiddenLabels) &&
  JSON.stringify([...before.capabilities].sort()) === JSON.stringify([...report.capabilities].sort());
type Content = Pick<NodeState, 'labels' | 'hiddenLabels' | 'capabilities'>;

/** Marks nodes as silent or heard from again, as far as this copy has listened itself. */
function sweep(draft: InventoryDraft, settings: Settings): Memory['silence'] {
  const { state, now } = draft;
  if (now.leadingSinceMs === undefined) return undefined;
  greet(draft, settings);
  // Do not check ten thousand nodes again for every fact.
  const knownMs = state.memo.nextSilentMs.get();
  const isDue = knownMs === undefined || now.monotonicMs >= knownMs;
  const present = isDue ? [...state.nodes.values()].filter((node) => node.state !== 'gone').length : 0;
  const nextMs = isDue ? missNodes(draft, settings, now.leadingSinceMs, present) : knownMs;
  if (nextMs !== undefined && nextMs < Infinity) draft.wakeAt(nextMs);
  return isDue ? { nextMs, present } : undefined;
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

/**
 * When the next node can become silent; undefined if some are silent now, because that counts only once it is in the
 * ledger.
 */
function missNodes(
  draft: InventoryDraft,
  { silentAfterMs, heartbeatsPerSecond = 0 }: Settings,
  leadingSinceMs: number,
  present: number,
): number | undefined {
  const { state, now } = draft;
  const nodes = [...state.nodes.values()];
  const blindMs = blindPatienceMs(state, present, silentAfterMs, heartbeatsPerSecond);
  // Not later than this: a node that is asked for more heartbeats, or heard for the first time, can be silent sooner.
  let next: number | undefined = nodes.some((node) => node.state === 'ready')
    ? now.monotonicMs + silentAfterMs
    : Infinity;
  for (const { node, state: nodeState } of nodes) {
    if (draft.full) return undefined;
    if (nodeState !== 'ready') continue;
    const heardMs = state.heardMs.get(node);
    const pacedMs = state.pacedMs.get(node);
    const isHeard = heardMs !== undefined && heardMs >= leadingSinceMs && pacedMs !== undefined;
    const patience = isHeard ? patienceMs(pacedMs, silentAfterMs) : blindMs;
    const deadlineMs = Math.max(heardMs ?? leadingSinceMs, leadingSinceMs) + patience;
    if (now.monotonicMs < deadlineMs) {
      if (next !== undefined) next = Math.min(next, deadlineMs);
      continue;
    }
    const lastHeard = heardMs === undefined ? undefined : state.heardAt.get(node);
    draft.emit({ type: 'node.silent', node, lastHeard: lastHeard ?? '' });
    next = undefined;
  }
  return next;
}

function answer(draft: InventoryDraft, request: Request): Answer {
  switch (request.op) {
    case 'list': {
      const present = [...draft.state.nodes.values()].filter((node) => node.state !== 'gone');
      present.sort((a, b) => (a.node < b.node ? -1 : 1));
      const { items: view, next } = pageOf(present, request, ({ node }) => node);
      return answered({ nodes: view.map(nodeView), ...next });
    }
    case 'get': {
      const node = draft.state.nodes.get(request.node);
      return node === undefined ? unknown(request.node) : answered(nodeView(node));
    }
    case 'remove': {
      const { node: name, force, by, reason } = request;
      const node = draft.state.nodes.get(name);
      if (node === undefined) return unknown(name);
      if (node.state === 'ready' && !force) return refused('conflict', `${name} is still reporting: ${HOW_TO_REMOVE}`);
      if (node.state !== 'gone') draft.emit({ type: 'node.left', node: name, because: 'removed', by, reason });
      return answered({ node: name, removed: true });
    }
    case 'label': {
      const node = draft.state.nodes.get(request.node);
      return node === undefined || node.state === 'gone' ? unknown(request.node) : setLabels(draft, node, request);
    }
    default:
      return assertNever(request);
  }
}

/** A removed node is no longer shown anywhere, but a running applier would continue to change the machine. */
const HOW_TO_REMOVE =
  'stop its applier and wait until the node is silent, or remove it at once with --force (force: true)';

const unknown = (node: string): Answer => refused('not-found', `node ${node} not found`);

function view(state: State, { key }: ViewKey): ViewBody | undefined {
  return nodeView(state.nodes.get(nodeOfToken(key)));
}

function nodeView(node: NodeState | undefined): Omit<NodeView, 'ledger'> | undefined {
  if (node === undefined) return undefined;
  const { stamp: _, kubernetesLabels: __, hiddenLabels: ___, because = '', unavailable = '', uid = '', ...view } = node;
  return { ...view, because, unavailable, uid };
}

interface Snapshot {
  readonly nodes: readonly NodeState[];
  readonly announced: readonly (readonly [string, ReportStamp])[];
  readonly incarnations: readonly (readonly [string, number])[];
}

/** Version 3 wrote '' for what is absent. */
function withoutEmpty(dumped: unknown): unknown {
  const { nodes, announced } = dumped as Snapshot;
  const isSaid = ([name, value]: [string, unknown]): boolean =>
    value !== '' || !['because', 'unavailable', 'uid'].includes(name);
  return { nodes: nodes.map((node) => Object.fromEntries(Object.entries(node).filter(isSaid))), announced };
}

/** Version 4 knew no labels that a person sets. */
function withoutSetLabels(dumped: unknown): unknown {
  const { nodes, announced } = dumped as Snapshot;
  return { nodes: nodes.map((node) => ({ ...node, setLabels: {}, hiddenLabels: {} })), announced };
}

/** Version 5 did not record incarnations. */
const withoutIncarnations = (dumped: unknown): unknown => ({ ...(dumped as Snapshot), incarnations: [] });

function loaded({ nodes, announced, incarnations }: Snapshot): State {
  const state = new State();
  for (const [node, incarnation] of incarnations) state.incarnations.set(node, incarnation);
  for (const [node, stamp] of announced) state.announced.set(node, stamp);
  for (const node of nodes) put(state, node);
  state.touched.clear();
  return state;
}
