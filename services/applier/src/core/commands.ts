import { EMPTY_CONFIG, fragmentId, type Config, type ConfigEntry } from '#libs/contracts';
import type { ForwardWork, Journal, RollbackWork } from './journal.js';
import { notAmong } from './plan.js';
import type { Item, Kinds, Step } from './ports.js';
import { inHand, type Progress, type State } from './state.js';

/** Whether the entry runs a command: it manages nothing that could be restored. */
const isCommand = (entry: ConfigEntry, kinds: Kinds): boolean =>
  kinds.order.includes(entry.kind) && kinds.resources(entry).length === 0;

/** Runs the check of a command; undefined if it has run and the command is needed, and for any other item. */
export function checkStep({ memory, settings }: State, item: Item, untilMs: number): Step | undefined {
  if (item.do !== 'apply' || !isCommand(item.entry, settings.kinds)) return undefined;
  return memory.progress.needed === fragmentId(item.entry)
    ? undefined
    : { do: 'check-command', entry: item.entry, untilMs };
}

/**
 * Notes in the journal that a command may run, after its check and before it runs: if the process is killed between,
 * a rollback must undo the command, but it must not undo one that was not needed.
 */
export function noteStep({ journal, settings: { kinds } }: State, work: ForwardWork, item: Item): Step | undefined {
  if (item.do !== 'apply' || !isCommand(item.entry, kinds)) return undefined;
  const id = fragmentId(item.entry);
  if (work.ran.includes(id)) return undefined;
  return { do: 'write-journal', journal: { ...journal, work: { ...work, ran: [...work.ran, id] } } };
}

/** The commands that ran for the config in force, and that a rollback lease to `to` has to undo. */
export function commandsToUndo({ ran = [] }: Journal, from: Config = EMPTY_CONFIG, to: Config): readonly string[] {
  const isOther = notAmong(from.fragments);
  const remaining = new Set(to.fragments.filter((entry) => !isOther(entry)).map(fragmentId));
  return ran.filter((id) => !remaining.has(id));
}

/** The commands that ran for a config. A repair runs only those that are needed again. */
export const ranFor = ({ inForce, ran = [] }: Journal, work: Pick<ForwardWork, 'to' | 'ran'>): readonly string[] =>
  work.to === inForce ? [...new Set([...ran, ...work.ran])] : work.ran;

/**
 * Undoes the next command of a failed change. The journal notes it first: an undo that ends the applier must not run
 * forever, because it runs before the files are restored.
 */
export function undoInRollback(state: State, work: RollbackWork, untilMs: number): Step | undefined {
  const ran = work.ran.filter((id) => !isGivenUp(work, id, state.memory.progress));
  const step = undoStep(state, work.to, ran, untilMs);
  if (step?.do !== 'undo') return step;
  const id = fragmentId(step.entry);
  if (state.memory.progress.undoing.has(id)) return step;
  const undosBegun = { ...work.undosBegun, [id]: (work.undosBegun?.[id] ?? 0) + 1 };
  return { do: 'write-journal', journal: { ...state.journal, work: { ...work, undosBegun } } };
}

/** How many processes may begin the same undo. One may be killed for another reason, such as a power cut. */
const UNDO_TRIES = 3;

const isGivenUp = ({ undosBegun = {} }: RollbackWork, id: string, { undoing }: Progress): boolean =>
  (undosBegun[id] ?? 0) >= UNDO_TRIES && !undoing.has(id);

/** The commands of a failed change that were not undone, with the reason if that failed. */
export const notUndoneIn = (work: RollbackWork, progress: Progress): readonly string[] =>
  notUndone(work.ran, progress).map((id) =>
    isGivenUp(work, id, progress) ? `${id} (undo failed: the applier ended ${UNDO_TRIES} times while it ran)` : id,
  );

/** Undoes the next of the commands that ran for a config, the last one first. */
export function undoStep(state: State, hash: string, ran: readonly string[], untilMs: number): Step | undefined {
  const { absent, progress } = state.memory;
  if (ran.length === 0) return undefined;
  const config = inHand(state, hash);
  if (config === undefined) return absent.has(hash) ? undefined : { do: 'load-config', hash };
  const entry = [...ran]
    .reverse()
    .map((id) => entryOf(config, id))
    .find((one) => one?.spec['undo'] !== undefined && !progress.undone.has(fragmentId(one)));
  return entry && { do: 'undo', entry, untilMs };
}

/** The commands that were not undone, with the reason if that failed. */
export const notUndone = (ran: readonly string[], { undone }: Progress): readonly string[] =>
  ran
    .filter((id) => !undone.has(id) || undone.get(id) !== undefined)
    .map((id) => (undone.get(id) === undefined ? id : `${id} (undo failed: ${undone.get(id) ?? ''})`));

/** What a report says about them. */
export const exceptText = (ids: readonly string[]): readonly string[] =>
  ids.length === 0 ? [] : [`rolled back, except ${ids.join(', ')}`];

const entryOf = ({ fragments }: Config, id: string): ConfigEntry | undefined =>
  fragments.find((entry) => fragmentId(entry) === id);
