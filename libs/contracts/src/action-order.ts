import { ACTION_KINDS, type ActionKind } from './enums.js';
import type { Action } from './facts.js';

/**
 * The one list that a set of actions comes to, whatever order they were asked for in:
 *
 *   drain < daemon-reload < reload (by unit) < restart (by unit) < reboot
 *
 * A1 Each action stands once. A2 A restart absorbs the reload of the same unit. A3 A reboot absorbs all but the drain,
 * which goes before it. A4 `none` stands only alone. A5 What is not understood is a reboot. A6 Nothing gives nothing.
 */
export function ordered(actions: Iterable<Action>): readonly Action[] {
  const known = [...actions].map(understood);
  const units = (kind: ActionKind): readonly string[] =>
    [...new Set(known.flatMap((action) => (action.kind === kind ? [action.unit as string] : [])))].sort();
  const has = (kind: ActionKind): boolean => known.some((action) => action.kind === kind);
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
