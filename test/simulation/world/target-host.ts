import type { Self, StepAnswer, StepOf } from '../../../services/applier/src/core/index.js';
import type { Chance } from './chance.js';
import type { Disk } from './disk.js';
import type { Machine } from './machine.js';
import type { Trouble } from './performer.js';
import type { Participant, Surroundings } from './surroundings.js';

/** A target elsewhere, as the copies of its applier see it. */
export interface TargetHost extends Participant {
  readonly world: Surroundings;
  readonly chance: Chance;
  readonly disk: Disk;
  readonly machine: Machine;
  readonly inversion: { lastMs: number };
  readonly wallSkewMs: number;
  readonly trouble: Trouble;
  /** Switched off for good. */
  readonly scrapped: boolean;
  /** The configs that are kept with its journal. */
  readonly kept: Map<string, string>;
  /** The time of the server. */
  readonly bootMs: number;
  readonly self: Self;
  /** The copy that owns it may change, so what was to be done takes longer. */
  disturbed(): void;
  delayMs(): number;
  requestMs(): number;
  requestFate(): 'done' | 'lost' | 'answer-lost';
  /** How long a call is on its way, and its answer. A call is never on its way for longer than it may be. */
  transitMs(timeoutMs: number): { readonly thereMs: number; readonly backMs: number };
  /** A write of this owner has arrived. */
  arrive(owner: string, step: StepOf<'apply' | 'restore' | 'act'>): StepAnswer;
  /** The server gets a new journal. */
  store(by: string, text: string, revision: number, isClaim: boolean): number | 'overtaken';
}
