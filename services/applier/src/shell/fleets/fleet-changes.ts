import { isDeepStrictEqual } from 'node:util';
import type { FleetClient } from '#libs/client';
import type { ChangeView, Fragment, FragmentRef, FragmentView } from '#libs/contracts';
import { manifestOf } from '#libs/manifests/lean';
import { RefusedError, UnreachableError, type Clock } from '../ports.js';
import { hashOf } from '../state/config-text.js';
import type { FleetCalls } from './fleet-link.js';
import { whyNotDone } from './fleet-progress.js';

/** A fragment as it should be in the other fleet; undefined: it should not exist there. */
export type WantedFragment = Fragment | undefined;

export interface FleetChangesOptions {
  readonly link: FleetCalls;
  /** The lease that is worked on; undefined if the last rollback is tried again. */
  readonly lease: () => string | undefined;
  readonly clock: Clock;
  /** Called before each write. Throws if another copy has taken over. */
  readonly fence: () => Promise<void>;
  readonly sleep: (ms: number) => Promise<void>;
}

type Fragments = ReadonlyMap<string, FragmentView>;

/** All fragments there, as they were listed, and the ids that were looked at since. */
interface Listed {
  readonly views: Promise<Fragments>;
  readonly atMs: number;
  readonly looked: Set<string>;
}

/** How a change ended there. */
type End = { readonly is: 'committed' } | { readonly is: 'failed'; readonly error: RefusedError };

/**
 * How long a rollback that failed waits before it is tried without a lease. To roll back a whole fleet is expensive.
 * The next lease may make it unnecessary, because a fleet that was cut off often finishes the change on its own.
 */
const NEXT_LEASE_MS = 120_000;
/** How often to look at a change that is rolled out. */
const LOOK_MS = 1_000;
const LOOK_FIRST_MS = 100;
/** How long the views of one service may take to agree. */
const LAG_MS = 20_000;
const DIGEST_CHARS = 12;
/** How long one list of fragments may be used: a comparison asks for one after the other. */
const LISTED_MS = 5_000;

/**
 * What this Sluice publishes in another fleet. Fragments are collected first and published as one change, which is
 * followed until its rollout there has ended. Whatever it does may be repeated: a change that is already in progress is
 * followed, and one with other content is aborted first.
 */
export class FleetChanges {
  private readonly wanted = new Map<string, WantedFragment>();
  /** When a rollback was first tried without a lease. */
  private withoutLeaseMs: number | undefined;
  /** The change that is followed now, for people. */
  private following: string | undefined;
  private listed: Listed | undefined;

  constructor(private readonly options: FleetChangesOptions) {}

  /** The change whose rollout there is waited for. */
  get current(): string | undefined {
    return this.following;
  }

  /** `id` is `Kind/name`. Nothing is published before `publish`. */
  want(id: string, fragment: WantedFragment): void {
    this.wanted.set(id, fragment);
  }

  /** The fragment that the other fleet has committed; undefined if there is none. */
  async find(id: string): Promise<FragmentView | undefined> {
    const view = (await this.fragments(id)).get(keyOf(id));
    return view === undefined || view.gone || view.fragment === undefined ? undefined : view;
  }

  /**
   * All fragments there. A comparison looks at one id after the other, and one list serves all of them. To look at an
   * id again is to begin another comparison.
   */
  private fragments(id: string): Promise<Fragments> {
    const nowMs = this.options.clock();
    const { listed } = this;
    if (listed !== undefined && nowMs - listed.atMs < LISTED_MS && !listed.looked.has(id)) {
      listed.looked.add(id);
      return listed.views;
    }
    const views = this.options.link.call((fleet) => fleet.list('fragments'));
    const fresh: Listed = { views, atMs: nowMs, looked: new Set([id]) };
    this.listed = fresh;
    views.catch(() => {
      if (this.listed === fresh) this.listed = undefined;
    });
    return views;
  }

  /** How the other fleet differs from that; undefined if it does not. */
  async differs(id: string, fragment: WantedFragment): Promise<string | undefined> {
    const found = await this.find(id);
    if (isAsWanted(found, fragment, this.options.link.source)) return undefined;
    if (fragment === undefined) return `${id} still exists there`;
    if (found === undefined) return `${id} does not exist there`;
    return `${id} was changed there by ${found.source} in ${found.change}`;
  }

  /** Publishes what differs as one change, and waits until it has ended. Throws Refused if it fails there. */
  async publish(leftMs: () => number): Promise<void> {
    this.listed = undefined;
    const attempt = this.attempt();
    const label = labelOf(this.wanted);
    const failure = await this.settleOpen(label, leftMs);
    if (failure !== undefined) throw failure;
    const [apply, gone] = await this.differences();
    if (apply.length + gone.length > 0) {
      const { link, fence } = this.options;
      const body = { apply: apply.map(manifestOf), delete: gone, message: label, author: 'another Sluice' };
      await fence();
      const text = JSON.stringify(body);
      const id = `${attempt} ${hashOf(body).slice(0, DIGEST_CHARS)}`;
      const change = await link.call((fleet) => fleet.publishChange(link.source, text, id));
      const end = await this.follow(change, leftMs);
      if (end.is === 'failed') throw end.error;
      await this.agree(leftMs);
    }
    this.wanted.clear();
  }

  /** What this is done for. A change that was published for it is not published twice. */
  private attempt(): string {
    const { lease, clock } = this.options;
    const id = lease();
    const nowMs = clock();
    if (id !== undefined) {
      this.withoutLeaseMs = undefined;
      return id;
    }
    this.withoutLeaseMs ??= nowMs;
    if (nowMs - this.withoutLeaseMs < NEXT_LEASE_MS)
      throw new RefusedError('node', 'waiting for the next lease of the hub, which may need no rollback');
    return `rollback at ${Math.floor(nowMs / NEXT_LEASE_MS)}`;
  }

  /** Ends every open change of this source, except one that has the same content: why that one failed, if it did. */
  private async settleOpen(label: string, leftMs: () => number): Promise<RefusedError | undefined> {
    const { link, fence } = this.options;
    const changes = await link.call((fleet) => fleet.list('changes'));
    const open = [...changes.values()].filter(({ source, phase }) => source === link.source && !ENDED.has(phase));
    for (const { change, message } of open) {
      if (message === label) {
        const end = await this.follow(change, leftMs);
        if (end.is === 'failed') return end.error;
        await this.agree(leftMs);
        continue;
      }
      await fence();
      await link.call((fleet) => abort(fleet, change));
      await this.follow(change, leftMs);
    }
    return undefined;
  }

  private async differences(): Promise<readonly [readonly Fragment[], readonly FragmentRef[]]> {
    const views = await this.options.link.call((fleet) => fleet.list('fragments'));
    const apply: Fragment[] = [];
    const gone: FragmentRef[] = [];
    for (const [id, fragment] of this.wanted) {
      const view = views.get(keyOf(id));
      const found = view?.gone === false ? view : undefined;
      if (isAsWanted(found, fragment, this.options.link.source)) continue;
      if (fragment === undefined) gone.push(refOf(id));
      else apply.push(fragment);
    }
    return [apply, gone];
  }

  /** The bucket with the fragments may be written a moment after the change has ended. */
  private async agree(leftMs: () => number): Promise<void> {
    for (let waitedMs = 0; waitedMs < LAG_MS && leftMs() > 0; waitedMs += LOOK_FIRST_MS) {
      const [apply, gone] = await this.differences();
      if (apply.length + gone.length === 0) return;
      await this.options.sleep(LOOK_FIRST_MS);
    }
  }

  /** Waits until the change has ended there. Throws UnreachableError if time is up. */
  private async follow(first: string, leftMs: () => number): Promise<End> {
    const { link, sleep } = this.options;
    let change = first;
    this.following = change;
    try {
      for (let pauseMs = LOOK_FIRST_MS; ; pauseMs = Math.min(LOOK_MS, pauseMs * 2)) {
        const view = await link.call((fleet) => fleet.get('changes', change));
        if (view?.duplicateOf !== undefined) {
          this.following = change = view.duplicateOf;
          continue;
        }
        const end = view === undefined ? undefined : await this.endOf(view);
        if (end !== undefined) return end;
        // That says nothing about the change: somebody there may have paused it, or it waits for a node.
        if (leftMs() <= 0) throw new UnreachableError(`${change} had not ended there: ${await this.progress(change)}`);
        await sleep(pauseMs);
      }
    } finally {
      this.following = undefined;
    }
  }

  private progress(change: string): Promise<string> {
    return this.options.link.call((fleet) => whyNotDone(fleet, change));
  }

  private async endOf(view: ChangeView): Promise<End | undefined> {
    if (!ENDED.has(view.phase)) return undefined;
    if (view.phase === 'committed') return { is: 'committed' };
    if (view.phase === 'rejected') {
      const review = await this.options.link.call((fleet) => fleet.get('reviews', view.change));
      return failed(
        `${view.change} was rejected there`,
        view.reasons.length > 0 ? view.reasons : (review?.reasons ?? []),
      );
    }
    const [rollout, isBad] = await this.options.link.call(
      async (fleet) =>
        [
          await fleet.get('rollouts', view.change),
          [...(await fleet.list('known-bad')).values()].some(({ change, gone }) => change === view.change && !gone),
        ] as const,
    );
    const why = view.reason || (rollout?.reason ?? '');
    const words = `${view.change} was ${view.outcome} there${why === '' ? '' : `: ${why}`}`;
    return { is: 'failed', error: new RefusedError(isBad ? 'content' : 'node', words) };
  }
}

const ENDED: ReadonlySet<string> = new Set(['committed', 'rejected', 'ended']);
/** Rejections that would be the same in every fleet. Others depend on what is in this one. */
const OF_CONTENT: ReadonlySet<string> = new Set(['known-bad']);
const MOST_REASONS = 5;

function failed(
  what: string,
  reasons: readonly { readonly code: string; readonly fragment: string; readonly message: string }[],
): End {
  const words = reasons
    .slice(0, MOST_REASONS)
    .map(({ fragment, message }) => (fragment === '' ? message : `${fragment}: ${message}`));
  const isContent = reasons.some(({ code }) => OF_CONTENT.has(code));
  return { is: 'failed', error: new RefusedError(isContent ? 'content' : 'node', `${what}: ${words.join('; ')}`) };
}

/** A change that has just ended cannot be aborted. */
async function abort(fleet: FleetClient, change: string): Promise<void> {
  try {
    await fleet.request('ops.rollout.abort', {
      change,
      by: 'another Sluice',
      reason: 'the hub rolls back or has a newer config',
    });
  } catch (error) {
    if ((error as Error).name !== 'OpsError') throw error;
  }
}

function isAsWanted(found: FragmentView | undefined, wanted: WantedFragment, source: string): boolean {
  // What others publish there is theirs.
  if (wanted === undefined) return found === undefined || found.source !== source;
  if (found?.fragment === undefined || found.source !== source) return false;
  const { labels, spec } = found.fragment;
  return isDeepStrictEqual([labels, spec], [wanted.labels, wanted.spec]);
}

/** The same content has the same label, whichever part of it differs in the other fleet. */
function labelOf(wanted: ReadonlyMap<string, WantedFragment>): string {
  const sorted = [...wanted].sort(([a], [b]) => (a < b ? -1 : 1)).map(([id, fragment]) => [id, fragment ?? null]);
  return `config ${hashOf(sorted).slice(0, DIGEST_CHARS)} of the hub`;
}

const keyOf = (id: string): string => id.replace('/', '.');
const refOf = (id: string): FragmentRef => ({
  kind: id.slice(0, id.indexOf('/')),
  name: id.slice(id.indexOf('/') + 1),
});
