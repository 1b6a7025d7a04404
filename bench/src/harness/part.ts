/** One figure and its floor. */
export interface Result {
  readonly name: string;
  readonly unit: string;
  readonly value: number;
  /** The figure of the least work that keeps the same promise, measured in the same run. Null if there is none. */
  readonly floor: number | null;
  /** value ÷ floor. Null without a floor. */
  readonly ratio: number | null;
  /** The goal as text. Empty for figures that only explain. */
  readonly goal: string;
  /** Null for figures without a goal. */
  readonly met: boolean | null;
  /** How it was measured, as text. */
  readonly note: string;
}

/** The arguments of a part. */
export interface PartContext {
  /** The number of nodes. A part that ran with another size says so in its notes. */
  readonly size: number;
  /** Prints progress. */
  readonly say: (text: string) => void;
  /** Called at the end of the part, in reverse order, also after a failure. */
  readonly atEnd: (undo: () => Promise<void> | void) => void;
}

/** One part of the bench: what it measures, and how. Throws SkipError if it cannot run here. */
export interface Part {
  readonly name: string;
  readonly what: string;
  readonly run: (context: PartContext) => Promise<readonly Result[]>;
  /** Only runs if it is named. */
  readonly onRequest?: true;
}

/** This part cannot be measured here. The message says why. */
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

/** Which number of a figure has the goal, and its only bound. */
export interface Goal {
  readonly of: 'value' | 'ratio';
  readonly least?: number;
  readonly most?: number;
}

/** A result. Its `met` follows from the goal. */
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
  const bound = goal.least === undefined ? `≤ ${goal.most}` : `≥ ${goal.least}`;
  return {
    ...measured,
    goal: `${bound}${goal.of === 'ratio' ? ' × floor' : ` ${unit}`}`,
    met: isMet(goal, goal.of === 'value' ? value : ratio),
    note,
  };
}

function isMet({ least = -Infinity, most = Infinity }: Goal, judged: number | null): boolean {
  return judged !== null && Number.isFinite(judged) && judged >= least && judged <= most;
}

/** None of these figures is precise to more than four digits. */
export const rounded = (value: number): number => (Number.isFinite(value) ? Number(value.toPrecision(4)) : value);
