import { ACTION_KINDS, type ActionKind } from './enums.js';
import type { Action } from './facts.js';

/**
 * The ordered list for a set of actions, whatever their order was:
 *
 *   drain < daemon-reload < reload (by unit) < restart (by unit) < reboot
 *
 * A1 Each action occurs once. A2 A restart absorbs the reload of the same unit. A3 A reboot absorbs everything except
 * the drain, which comes before it. A4 `none` occurs only alone. A5 An unknown action is a reboot. A6 No actions give
 * an empty list.
 */
export function ordered(actions: Iterable<Action>): readonly Action[] {
  const parsed = [...actions].map(understood);
  const units = (kind: ActionKind): readonly string[] =>
    [...new Set(parsed.flatMap((action) => (action.kind === kind ? [action.unit as string] : [])))].sort();
  const has = (kind: ActionKind): boolean => parsed.some((action) => action.kind === kind);
  const drain: readonly Action[] = has('drain') ? [{ kind: 'drain' }] : [];
  if (has('reboot')) return [...drain, { kind: 'reboot' }];
  const restarts = units('restart');
  const reloads = units('reload').filter((unit) => !restarts.includes(unit));
  const list: readonly Action[] = [
    ...drain,
    ...(has('daemon-reload') ? [{ kind: 'daemon-reload' } as const] : []),
    ...reloads.map((unit) => ({ kind: 'reload', unit }) as const),
    ...restarts.map((unit) => ({ kind: 'restart', unit }) as const),
  ];
  return list.length === 0 && has('none') ? [{ kind: 'none' }] : list;
}

function understood(action: Action): Action {
  const needsUnit = action.kind === 'reload' || action.kind === 'restart';
  if (!ACTION_KINDS.includes(action.kind) || (needsUnit && !action.unit)) return { kind: 'reboot' };
  return action;
}
