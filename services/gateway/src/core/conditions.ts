import type { Reason } from '#libs/contracts';
import type { Condition, Status } from './resource.js';

/** A condition without its time. */
export type ConditionDraft = readonly [
  type: 'Accepted' | 'Validated' | 'Progressing' | 'Ready' | 'Admission' | 'Definition' | 'Drained',
  status: Condition['status'],
  reason: string,
  message?: string,
];

/** As everywhere in Kubernetes, the time is that of the last change of `status`. */
export function conditionsOf(
  drafts: readonly ConditionDraft[],
  generation: number,
  before: Status | undefined,
  at: string,
): readonly Condition[] {
  return drafts.map(([type, status, reason, message = '']) => {
    const old = before?.conditions?.find((one) => one.type === type);
    return {
      type,
      status,
      observedGeneration: generation,
      lastTransitionTime: old?.status === status ? old.lastTransitionTime : at,
      reason,
      message: message.slice(0, MOST),
    };
  });
}

const MOST = 4_000;

/** A code in the format of Kubernetes reasons: `bad-path` becomes `BadPath`. */
export const reasonOf = (code: string): string =>
  code
    .split('-')
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join('') || 'Rejected';

/** Whether two statuses are equal, whatever the order of their fields. */
export const isSame = (a: unknown, b: unknown): boolean => stable(a) === stable(b);

function stable(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(stable).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? '';
  return `{${Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, item]) => `${key}:${stable(item)}`)
    .join()}}`;
}

const MOST_LINES = 5;

/** Reasons in one line, for a status or a refusal: the fragment if it is another one, the field, and the error. */
export function wordsOf(reasons: readonly Reason[], id: string): string {
  const lines = reasons
    .slice(0, MOST_LINES)
    .map(({ fragment, field, message }) =>
      [fragment === id ? '' : fragment, field, message].filter((part) => part !== '').join(': '),
    );
  return `${lines.join('; ')}${reasons.length > MOST_LINES ? ` (and ${reasons.length - MOST_LINES} more)` : ''}`;
}
