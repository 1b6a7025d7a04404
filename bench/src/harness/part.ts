/** One figure next to its floor. */
export interface Result {
  readonly name: string;
  readonly unit: string;
  readonly value: number;
  /** The same by the least work for the same promise, measured in the same run; null where there is none. */
  readonly floor: number | null;
  /** value ÷ floor; null without a floor. */
  readonly ratio: number | null;
  /** What is to be reached, in words; empty for figures that only explain. */
  readonly goal: string;
  /** Null for figures without a goal. */
  readonly met: boolean | null;
  /** How it was measured, for people. */
  readonly note: string;
}

/** What a part is given. */
export interface PartContext {
  /** How many nodes; a part that was asked for another size says so in its notes. */
  readonly size: number;
  /** Words about progress, for people. */
  readonly say: (text: string) => void;
  /** Called at the end of the part, last first, also after a failure. */
  readonly atEnd: (undo: () => Promise<void> | void) => void;
}

/** One part of the bench: what it measures, and how. Throws SkipError when it cannot run here. */
export interface Part {
  readonly name: string;
  readonly what: string;
  readonly run: (context: PartContext) => Promise<readonly Result[]>;
  /** Not run unless it is named. */
  readonly onRequest?: true;
}

/** This part cannot be measured here; the message says why. */
export class SkipError extends Error {
  override readonly name = 'SkipError';
}

interface Figure {
  readonly name: string;
  readonly unit: string;
  readonly value: number;
  readonly floor?: number;
  readonly note?: string;
}

/** Which of a figure's numbers has the goal, and its one bound. */
export interface Goal {
  readonly of: 'value' | 'ratio';
  readonly least?: number;
  readonly most?: number;
}

/** A result; its `met` follows from the goal. */
export function result({ name, unit, value, floor, note = '' }: Figure, goal?: Goal): Result {
  const ratio = floor === undefined || floor === 0 ? null : value / floor;
  const measured = {
    name,
    unit,
    value: rounded(value),
    floor: floor === undefined ? null : rounded(floor),
    ratio: ratio === null ? null : rounded(ratio),
  };
  if (goal === undefined) return { ...measured, goal: '', met: null, note };
  const words = goal.least === undefined ? `≤ ${goal.most}` : `≥ ${goal.least}`;
  return {
    ...measured,
    goal: `${words}${goal.of === 'ratio' ? ' × floor' : ` ${unit}`}`,
    met: isMet(goal, goal.of === 'value' ? value : ratio),
    note,
  };
}

function isMet({ least = -Infinity, most = Infinity }: Goal, judged: number | null): boolean {
  return judged !== null && Number.isFinite(judged) && judged >= least && judged <= most;
}

/** Four digits are more than any of these figures is good for. */
export const rounded = (value: number): number => (Number.isFinite(value) ? Number(value.toPrecision(4)) : value);
