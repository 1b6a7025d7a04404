import type { FleetClient } from '#libs/client';
import type { ChangeView, DrainView, PoolView, ReviewView, RolloutView } from '#libs/contracts';
import { isChangeId, stalledText } from '#libs/contracts';
import { EXIT, type ExitCode } from '../output/exit.js';
import { unreadText } from '../change/change-not-found.js';
import { changeStatus } from '../change/change-status.js';
import { changeIdOf, nodeNameOf } from '../input/arguments.js';
import type { Session } from '../connection/session.js';
import { reasonTexts } from '../output/reasons.js';
import { nodesReached } from '../output/rollout-tree.js';
import { count } from '../output/table.js';

export interface Why {
  readonly because: string;
  readonly text: string;
  /** The changes or nodes for which it waits. */
  readonly holders: readonly string[];
}

/** The scheduler's answer for a node, with the change that it is about. */
interface WhyNode extends Why {
  readonly change?: string;
}

const NODE = 'node/';
const CHANGE = 'change/';

/**
 * `sluice why NODE|CHANGE`: the reason why it waits, or how it ended. A node may have the name of a change: `node/c1`
 * is the node, and `c1` the change if there is one.
 */
export async function why(session: Session, subject: string): Promise<ExitCode> {
  if (subject.startsWith(NODE)) return whyNode(session, nodeNameOf(subject.slice(NODE.length)));
  if (subject.startsWith(CHANGE)) return whyOneChange(session, changeIdOf(subject.slice(CHANGE.length)));
  if (!isChangeId(subject)) return whyNode(session, nodeNameOf(subject));
  const node = await (await session.fleet()).get('nodes', subject);
  if (node !== undefined && node.state !== 'gone')
    session.io.say(`there is also a node ${subject}: see sluice why ${NODE}${subject}`);
  return whyOneChange(session, subject);
}

async function whyNode(session: Session, node: string): Promise<ExitCode> {
  const fleet = await session.fleet();
  const answer = await fleet.request<WhyNode>('ops.node.why', { node });
  switch (answer.because) {
    case 'not-started':
      return print(session, await whyNotStarted(fleet, answer));
    case 'draining':
      return print(session, whyDraining(answer, await fleet.get('drains', node)));
    case 'applying':
      return print(session, await whyApplying(fleet, node, answer));
    default:
      return print(session, answer);
  }
}

async function whyOneChange(session: Session, subject: string): Promise<ExitCode> {
  const fleet = await session.fleet();
  const [change, review, rollout, pools, drains] = await Promise.all([
    fleet.get('changes', subject),
    fleet.get('reviews', subject),
    fleet.get('rollouts', subject),
    fleet.list('pools'),
    fleet.list('drains'),
  ]);
  if (change === undefined && (await fleet.unreadChanges()).includes(subject))
    return print(session, { change: subject, ...unread(subject) });
  if (change === undefined)
    throw new Error(
      `change ${subject} not found: list changes with sluice get changes (if ${subject} is a node: sluice why ${NODE}${subject})`,
    );
  const others = await Promise.all(change.waitsFor.map((other) => fleet.get('changes', other)));
  const waitsFor = others.filter((other) => other !== undefined);
  const answered = whyChange(change, review, rollout, pools, [...drains.values()], waitsFor);
  const deferred = answered.because === 'committed' ? await whyDeferred(fleet, rollout) : '';
  return print(session, { change: subject, ...answered, text: `${answered.text}${deferred}` });
}

/** How many nodes say why they do not have the change yet. */
const MOST_DEFERRED = 3;

/** A node that a committed change has deferred may wait for something that only a person can do. */
async function whyDeferred(fleet: FleetClient, rollout: RolloutView | undefined): Promise<string> {
  const nodes = (rollout?.worst ?? []).flatMap(({ node, state }) => (state === 'deferred' ? [node] : []));
  const texts = await Promise.all(
    nodes.slice(0, MOST_DEFERRED).map(async (node) => {
      try {
        return `; ${node}: ${(await fleet.request<Why>('ops.node.why', { node })).text}`;
      } catch {
        // The node may be removed at any time.
        return '';
      }
    }),
  );
  const more = (rollout?.deferred ?? 0) - nodes.slice(0, MOST_DEFERRED).length;
  return `${texts.join('')}${texts.length > 0 && more > 0 ? `; and ${more} more` : ''}`;
}

/** How long the applier of another fleet may take to find out what that fleet waits for. */
const WORK_MS = 5_000;

/** A change that has not started may wait for a person to apply what it refers to. */
async function whyNotStarted(fleet: FleetClient, answer: WhyNode): Promise<WhyNode> {
  const change = answer.change === undefined ? undefined : await fleet.get('changes', answer.change);
  const needs = change === undefined ? [] : needsOf(change);
  return { ...answer, text: [answer.text, ...needs].join('; ') };
}

/** Another fleet takes as long as its own rollout. Its applier knows which node there it waits for. */
async function whyApplying(fleet: FleetClient, node: string, answer: Why): Promise<Why> {
  const view = await fleet.get('nodes', node);
  if (view?.capabilities.includes('kind:FleetChange') !== true) return answer;
  const work = await fleet.workOf(node, WORK_MS);
  return work === '' ? answer : { ...answer, text: `${answer.text}; in that fleet, ${work}` };
}

/** The scheduler knows that the node is draining. The drain service knows its progress, and what blocks it. */
export function whyDraining(answer: Why, drain: DrainView | undefined): Why {
  if (drain?.state !== 'draining' || (drain.total === 0 && drain.reason === '')) return answer;
  const waiting = drain.waitingFor.length === 0 ? '' : `, waiting for ${drain.waitingFor.join(', ')}`;
  const blocked = drain.reason === '' ? '' : `; blocked since ${drain.blockedSince}: ${drain.reason}`;
  return { ...answer, text: `draining: ${drain.evicted} of ${drain.total} pods evicted${waiting}${blocked}` };
}

/** The one answer for a change, from its views. */
export function whyChange(
  change: ChangeView,
  review: ReviewView | undefined,
  rollout: RolloutView | undefined,
  pools: ReadonlyMap<string, PoolView>,
  drains: readonly DrainView[] = [],
  waitsFor: readonly ChangeView[] = [],
): Why {
  const { word, detail } = changeStatus(change, rollout);
  const stalledBy = rollout?.stalledBy ?? [];
  const failed = `failed (${rollout?.reason || 'no reason given'})`;
  switch (word) {
    case 'rejected':
      return answer('rejected', `rejected: ${rejectionOf(change, review)}`);
    case 'waiting': {
      if (change.needs.length > 0)
        return answer('needs', [needsText(change, review), ...pausedText(change)].join('; '), change.needs);
      const others = change.waitsFor.join(', ');
      const text = `waiting for ${others}: ${change.waitsFor.length === 1 ? 'it changes' : 'they change'} some of the same nodes or fragments`;
      return answer('waiting', [text, ...waitsFor.flatMap(needsOf), ...pausedText(change)].join('; '), change.waitsFor);
    }
    case 'paused':
      return answer(
        'paused',
        `paused${detail === '' ? '' : `: ${detail}`}; continue with sluice resume ${change.change}`,
      );
    case 'stalled':
      return answer('stalled', stalledText(stalledBy, pools.values()), stalledBy);
    case 'reverting':
      return stalledBy.length > 0
        ? answer('stalled', `${failed}; the rollback is ${stalledText(stalledBy, pools.values())}`, stalledBy)
        : answer('reverting', `${failed}; rolling back`, active(rollout));
    case 'rolling':
      return rolling(rollout as RolloutView, pools, drains);
    case 'committed':
    case 'succeeded':
      return answer('committed', `committed${deferredText(rollout?.deferred ?? 0)}`);
    case 'accepted':
    case 'rendered':
    case 'validated':
    case 'complete':
    case 'published':
      return answer(word, `${word}: ${detail}; if this takes long, sluice doctor shows which service is missing`);
    case 'reverted': {
      const isUntouched = rollout !== undefined && rollout.nodes > 0 && nodesReached(rollout) === 0;
      const text = isUntouched ? 'it ended before any node was changed' : 'rolled back';
      return answer(word, `${text}${detail === '' ? '' : `: ${detail}`}`);
    }
    default:
      return answer(word, `ended: ${word}${detail === '' ? '' : `: ${detail}`}`);
  }
}

const answer = (because: string, text: string, holders: readonly string[] = []): Why => ({ because, text, holders });

/** A change that waits may be paused already. */
const pausedText = ({ paused, change }: ChangeView): readonly string[] =>
  paused === '' ? [] : [`it is also paused ${paused}: continue with sluice resume ${change}`];

/** What another change needs may take a day, and holds up this one, too. */
function needsOf({ change, needs }: ChangeView): readonly string[] {
  if (needs.length === 0) return [];
  const wayOut = `apply ${needs.length === 1 ? 'it' : 'them'}, or use sluice abort ${change}, or publish a change of all fragments of ${change}, which replaces it`;
  return [`${change} needs ${missingText(needs)}: ${wayOut}`];
}

const missingText = (needs: readonly string[]): string =>
  `${needs.join(', ')}, which ${needs.length === 1 ? 'does' : 'do'} not exist yet`;

function needsText({ needs, needsUntilMs, change }: ChangeView, review: ReviewView | undefined): string {
  const who = reasonTexts(review?.verdict === 'blocked' ? review.reasons : []).map(({ text }) => text);
  const wayOut = `apply ${needs.length === 1 ? 'it' : 'them'}, or use sluice abort ${change}; it is rejected at ${new Date(needsUntilMs).toISOString()}`;
  return `needs ${missingText(needs)}${who.length === 0 ? '' : ` (${who.join('; ')})`}: ${wayOut}`;
}

function rejectionOf(change: ChangeView, review: ReviewView | undefined): string {
  const reasons = change.reasons.length > 0 ? change.reasons : (review?.reasons ?? []);
  return (
    reasonTexts(reasons)
      .map(({ text }) => text)
      .join('; ') || change.reason
  );
}

const unread = (change: string): Why =>
  answer(
    'published',
    `${unreadText([change])}: it waits for the merger; sluice doctor shows why the merger does not read it`,
  );

function deferredText(nodes: number): string {
  if (nodes === 0) return '';
  return `; ${count(nodes, 'node is deferred and gets it as soon as it can', 'nodes are deferred and get it as soon as they can')}`;
}

function rolling(rollout: RolloutView, pools: ReadonlyMap<string, PoolView>, drains: readonly DrainView[]): Why {
  const busy = active(rollout);
  if (busy.length > 0) {
    return answer(
      'under-way',
      `${count(busy.length, 'node')} in progress: ${busy.slice(0, 10).join(', ')}${blockedDrains(rollout, drains)}`,
      busy,
    );
  }
  const full = Object.keys(rollout.pools)
    .map((name) => pools.get(name))
    .find((pool) => pool !== undefined && pool.used >= pool.budget);
  if (full === undefined) return answer('about-to-grant', 'the next nodes are about to start');
  const unavailable = full.unavailable.slice(0, 10).map(({ node, because }) => `${node} (${because})`);
  return answer(
    'budget',
    `the budget of pool ${full.pool} is used up: ${full.used} unavailable, ${full.budget} allowed: ${unavailable.join(', ')}`,
    full.unavailable.map(({ node }) => node),
  );
}

/** The drains of the rollout that are blocked. */
function blockedDrains({ change }: RolloutView, drains: readonly DrainView[]): string {
  const blocked = drains.filter(
    (drain) => drain.change === change && drain.state === 'draining' && drain.reason !== '',
  );
  const lines = blocked
    .slice(0, 3)
    .map(
      ({ node, blockedSince, reason }) => `; the drain of ${node} has been blocked since ${blockedSince}: ${reason}`,
    );
  return `${lines.join('')}${blocked.length > lines.length ? `; and ${blocked.length - lines.length} more` : ''}`;
}

const active = (rollout: RolloutView | undefined): string[] =>
  (rollout?.worst ?? [])
    .filter(({ state }) => ['draining', 'applying', 'uncordoning'].includes(state))
    .map(({ node }) => node);

function print(session: Session, result: Why & { readonly change?: string }): ExitCode {
  session.io.out(session.isJson ? JSON.stringify(result) : result.text.replaceAll('\n', '\n  '));
  return EXIT.done;
}
