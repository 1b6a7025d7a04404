import type { ChangeView, DrainView, PoolView, ReviewView, RolloutView } from '#libs/contracts';
import { isChangeId } from '#libs/contracts';
import { EXIT, type ExitCode } from '../exit.js';
import { standing } from '../standing.js';
import { nodeNameOf } from '../steering.js';
import type { Session } from '../session.js';

export interface Why {
  readonly because: string;
  readonly text: string;
  /** The changes or nodes that hold it. */
  readonly holders: readonly string[];
}

/** `sluice why NODE|CHANGE`: the one reason why it waits, or what became of it. */
export async function why(session: Session, subject: string): Promise<ExitCode> {
  const fleet = await session.fleet();
  if (!isChangeId(subject)) {
    const answer = await fleet.request<Why>('ops.node.why', { node: nodeNameOf(subject) });
    return print(
      session,
      answer.because === 'draining' ? whyDraining(answer, await fleet.get('drains', subject)) : answer,
    );
  }
  const [change, review, rollout, pools, drains] = await Promise.all([
    fleet.get('changes', subject),
    fleet.get('reviews', subject),
    fleet.get('rollouts', subject),
    fleet.list('pools'),
    fleet.list('drains'),
  ]);
  if (change === undefined)
    throw new Error(
      `there is no change ${subject}: sluice get changes lists them (a node of that name: sluice get nodes ${subject})`,
    );
  return print(session, { change: subject, ...whyChange(change, review, rollout, pools, [...drains.values()]) });
}

/** The scheduler knows that it drains; the drain service shows how far that is, and what holds it up. */
export function whyDraining(answer: Why, drain: DrainView | undefined): Why {
  if (drain?.state !== 'draining' || (drain.total === 0 && drain.reason === '')) return answer;
  const waiting = drain.waitingFor.length === 0 ? '' : `, waiting for ${drain.waitingFor.join(', ')}`;
  const held = drain.reason === '' ? '' : `; since ${drain.blockedSince}: ${drain.reason}`;
  return { ...answer, text: `it is being drained: ${drain.evicted} of ${drain.total} pods have gone${waiting}${held}` };
}

/** The one answer for a change, from its views. */
export function whyChange(
  change: ChangeView,
  review: ReviewView | undefined,
  rollout: RolloutView | undefined,
  pools: ReadonlyMap<string, PoolView>,
  drains: readonly DrainView[] = [],
): Why {
  const at = standing(change, rollout);
  switch (at.word) {
    case 'rejected': {
      const reasons = change.reasons.length > 0 ? change.reasons : (review?.reasons ?? []);
      const lines = reasons.map(({ fragment, field, message }) =>
        `${[fragment, field].filter((part) => part !== '').join(' ')}: ${message}`.replace(/^: /, ''),
      );
      return { because: 'rejected', text: `rejected: ${lines.join('; ') || change.reason}`, holders: [] };
    }
    case 'waiting':
      return {
        because: 'behind',
        text: `it waits for ${change.behind.join(', ')}, with which it shares a node or a fragment`,
        holders: change.behind,
      };
    case 'paused':
      return {
        because: 'paused',
        text: `it is paused${at.detail === '' ? '' : `: ${at.detail}`}; sluice resume ${change.change} lets it go on`,
        holders: [],
      };
    case 'stalled': {
      const nodes = rollout?.stalledBy ?? [];
      return {
        because: 'stalled',
        text: `it is held by ${nodes.join(', ')}: until heard of, or sluice skip NODE, or sluice remove NODE`,
        holders: nodes,
      };
    }
    case 'reverting':
      if (rollout !== undefined && rollout.stalledBy.length > 0) {
        const held = rollout.stalledBy.join(', ');
        return {
          because: 'stalled',
          text: `it failed (${at.detail || 'no reason was given'}), and its way back is held by ${held}: until heard of, or sluice skip NODE, or sluice remove NODE`,
          holders: rollout.stalledBy,
        };
      }
      return {
        because: 'reverting',
        text: `it failed (${at.detail || 'no reason was given'}), and goes back`,
        holders: active(rollout),
      };
    case 'rolling':
      return rolling(rollout as RolloutView, pools, drains);
    case 'committed':
    case 'succeeded':
      return {
        because: 'committed',
        text: `it is committed${rollout !== undefined && rollout.owed > 0 ? `; ${rollout.owed === 1 ? '1 node is' : `${rollout.owed} nodes are`} owed it and ${rollout.owed === 1 ? 'gets' : 'get'} it as soon as ${rollout.owed === 1 ? 'it' : 'they'} can` : ''}`,
        holders: [],
      };
    case 'accepted':
    case 'rendered':
    case 'validated':
    case 'complete':
    case 'published':
      return {
        because: at.word,
        text: `it is ${at.word}: ${at.detail}; if that lasts, sluice doctor says which service is missing`,
        holders: [],
      };
    default:
      return {
        because: at.word,
        text: `it ended as ${at.word}${at.detail === '' ? '' : `: ${at.detail}`}`,
        holders: [],
      };
  }
}

function rolling(rollout: RolloutView, pools: ReadonlyMap<string, PoolView>, drains: readonly DrainView[]): Why {
  const busy = active(rollout);
  if (busy.length > 0)
    return {
      because: 'under-way',
      text: `${busy.length === 1 ? 'a node is' : `${busy.length} nodes are`} changing: ${busy.slice(0, 10).join(', ')}${blockedOf(rollout, drains)}`,
      holders: busy,
    };
  const full = Object.keys(rollout.pools)
    .map((name) => pools.get(name))
    .find((pool) => pool !== undefined && pool.used >= pool.budget);
  if (full === undefined)
    return { because: 'about-to-grant', text: 'the next nodes are about to be given their leases', holders: [] };
  const holders = full.unavailable.map(({ node }) => node);
  const who = full.unavailable
    .slice(0, 10)
    .map(({ node, because }) => `${node} (${because})`)
    .join(', ');
  return {
    because: 'budget',
    text: `pool ${full.pool} has no room: ${full.used} of ${full.budget} may be unavailable, and are: ${who}`,
    holders,
  };
}

/** What holds up drains of the rollout. */
function blockedOf({ change }: RolloutView, drains: readonly DrainView[]): string {
  const blocked = drains.filter(
    (drain) => drain.change === change && drain.state === 'draining' && drain.reason !== '',
  );
  const lines = blocked
    .slice(0, 3)
    .map(({ node, blockedSince, reason }) => `; the drain of ${node} is blocked since ${blockedSince}: ${reason}`);
  return `${lines.join('')}${blocked.length > lines.length ? `; and ${blocked.length - lines.length} more` : ''}`;
}

const active = (rollout: RolloutView | undefined): string[] =>
  (rollout?.worst ?? [])
    .filter(({ state }) => ['draining', 'ready', 'uncordoning'].includes(state))
    .map(({ node }) => node);

function print(session: Session, answer: Why & { readonly change?: string }): ExitCode {
  session.io.out(session.isJson ? JSON.stringify(answer) : answer.text);
  return EXIT.done;
}
