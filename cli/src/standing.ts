import type { ChangeView, RolloutView } from '#libs/contracts';
import { EXIT, type ExitCode } from './exit.js';

export type Tone = 'good' | 'bad' | 'busy' | 'held' | 'calm';

/** Where a change stands, in words for people and programs. */
export interface Standing {
  /** One word, stable. */
  readonly word: string;
  readonly tone: Tone;
  /** The one thing that explains it; may be empty. */
  readonly detail: string;
  /** Set once it has ended, and when it waits for a person: what `--wait` ends with. */
  readonly exit?: ExitCode;
  readonly isEnded: boolean;
}

/** What the merger's and the scheduler's views say together. */
export function standing(change: ChangeView | undefined, rollout: RolloutView | undefined): Standing {
  switch (change?.phase) {
    case undefined:
      return { word: 'published', tone: 'calm', detail: 'no service has taken it yet', isEnded: false };
    case 'rejected':
      return ended('rejected', 'bad', summary(change), EXIT.rejected);
    case 'ended':
      return ended(
        change.outcome === '' ? 'ended' : change.outcome,
        'bad',
        change.reason || supersededBy(rollout) || (rollout?.reason ?? ''),
        EXIT.failed,
      );
    case 'committed':
      return ended(
        'committed',
        'good',
        rollout !== undefined && rollout.owed > 0 ? `${rollout.owed} owed` : '',
        EXIT.done,
      );
    case 'accepted':
      return open('accepted', 'calm', 'its turn to be rendered comes next');
    case 'waiting':
      return open('waiting', 'held', change.behind.length === 0 ? '' : `behind ${change.behind.join(', ')}`);
    case 'rendered':
      return open('rendered', 'busy', 'in review');
    case 'validated':
    case 'rolling':
      return rollout === undefined ? open(change.phase, 'busy', 'about to start') : rolling(rollout);
  }
}

function rolling(rollout: RolloutView): Standing {
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

const open = (word: string, tone: Tone, detail: string): Standing => ({ word, tone, detail, isEnded: false });
const ended = (word: string, tone: Tone, detail: string, exit: ExitCode): Standing => ({
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
