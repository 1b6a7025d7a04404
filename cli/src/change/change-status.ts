import type { ChangeView, RolloutView } from '#libs/contracts';
import { EXIT, type ExitCode } from '../output/exit.js';

export type Tone = 'good' | 'bad' | 'busy' | 'held' | 'calm';

/** The status of a change, for people and programs. */
export interface ChangeStatus {
  /** One word, stable. */
  readonly word: string;
  readonly tone: Tone;
  /** The one thing that explains it; may be empty. */
  readonly detail: string;
  /** The exit code of `--wait`: set once the change has ended, or waits for a person. */
  readonly exit?: ExitCode;
  readonly isEnded: boolean;
  /** It is paused and waits for its turn: its rollout will start paused. */
  readonly isHeldBack?: true;
}

/** Combines the views of the merger and of the scheduler. */
export function changeStatus(change: ChangeView | undefined, rollout: RolloutView | undefined): ChangeStatus {
  const status = statusOf(change, rollout);
  if (rollout !== undefined || status.isEnded || (change?.paused ?? '') === '') return status;
  const detail = [status.detail, `paused ${change?.paused}`].filter((part) => part !== '').join('; ');
  return { ...status, tone: 'held', detail, isHeldBack: true };
}

function statusOf(change: ChangeView | undefined, rollout: RolloutView | undefined): ChangeStatus {
  switch (change?.phase) {
    case undefined:
    case 'accepted':
    case 'rendered':
    case 'validated':
    case 'rolling':
      // The views have different writers: if there is a rollout, the merger's view is older.
      return rollout === undefined ? preparing(change?.phase) : rolling(rollout);
    case 'rejected':
      return ended('rejected', 'bad', summary(change), EXIT.rejected);
    case 'ended':
      return ended(
        change.outcome === '' ? 'ended' : change.outcome,
        change.outcome === 'duplicate' ? 'calm' : 'bad',
        change.reason || supersededBy(rollout) || (rollout?.reason ?? ''),
        EXIT.failed,
      );
    case 'committed':
      return ended('committed', 'good', rollout === undefined ? '' : leftOutText(rollout), EXIT.done);
    case 'waiting':
      return open('waiting', 'held', waitingText(change));
  }
}

/** How many nodes a change left out for now; empty if none. */
export const deferredText = ({ deferred }: Pick<RolloutView, 'deferred'>): string =>
  deferred > 0 ? `${deferred} deferred` : '';

/** The same for a committed change, and whether no node has applied it. */
const leftOutText = (rollout: RolloutView): string =>
  rollout.applied === 0 && rollout.deferred > 0
    ? `${deferredText(rollout)}, no node has applied it yet`
    : deferredText(rollout);

/** What a change waits for: other changes, or fragments that do not exist yet. */
function waitingText({ waitsFor, needs, needsUntilMs }: ChangeView): string {
  if (needs.length > 0) return `needs ${needs.join(', ')} until ${new Date(needsUntilMs).toISOString()}`;
  return waitsFor.length === 0 ? '' : `waits for ${waitsFor.join(', ')}`;
}

function preparing(phase: 'accepted' | 'rendered' | 'validated' | 'rolling' | undefined): ChangeStatus {
  switch (phase) {
    case undefined:
      return open('published', 'calm', 'no service has picked it up yet');
    case 'accepted':
      return open(phase, 'calm', 'about to be rendered');
    case 'rendered':
      return open(phase, 'busy', 'in review');
    case 'validated':
    case 'rolling':
      return open(phase, 'busy', 'about to start');
  }
}

function rolling(rollout: RolloutView): ChangeStatus {
  switch (rollout.phase) {
    case 'reverting':
      return open(
        'reverting',
        'bad',
        rollout.stalledBy.length > 0 ? `stalled by ${rollout.stalledBy.join(', ')}; ${rollout.reason}` : rollout.reason,
      );
    case 'reverted':
      return { ...open('reverted', 'bad', rollout.reason), exit: EXIT.failed };
    case 'superseded':
      return { ...open('superseded', 'held', supersededBy(rollout)), exit: EXIT.failed };
    case 'complete':
      return open('complete', 'good', 'about to be committed');
    case 'succeeded':
      return { ...open('succeeded', 'good', ''), exit: EXIT.done };
    case 'rolling':
      if (rollout.paused)
        return { word: 'paused', tone: 'held', detail: rollout.reason, exit: EXIT.unfinished, isEnded: false };
      if (rollout.stalledBy.length > 0) return open('stalled', 'held', `by ${rollout.stalledBy.join(', ')}`);
      return open('rolling', 'busy', rollout.reason);
  }
}

const open = (word: string, tone: Tone, detail: string): ChangeStatus => ({ word, tone, detail, isEnded: false });
const ended = (word: string, tone: Tone, detail: string, exit: ExitCode): ChangeStatus => ({
  word,
  tone,
  detail,
  exit,
  isEnded: true,
});
const supersededBy = (rollout: RolloutView | undefined): string =>
  rollout?.supersededBy ? `by ${rollout.supersededBy}` : '';

function summary(change: ChangeView): string {
  const [first, ...rest] = change.reasons;
  if (first === undefined) return change.reason;
  return `${first.fragment === '' ? '' : `${first.fragment}: `}${first.message}${rest.length === 0 ? '' : ` (and ${rest.length} more)`}`;
}
