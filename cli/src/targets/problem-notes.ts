import { RequestEndpoints, type Bus, type ServiceNote } from '#libs/nats';
import type { Logger } from '#libs/process';
import type { InventoryProblem } from './inventory.js';

export interface ProblemNotesOptions {
  readonly bus: Bus;
  /** What the targets are, such as `functions`. */
  readonly targets: string;
  readonly version: string;
  readonly log: Logger;
}

/** Notes are sent to everybody who asks which services run. */
const MOST_NOTES = 20;

const CONTEST = {
  reason: 'another applier takes it over again and again',
  todo: 'rename one of two targets with this name, or stop the applier that runs with other flags',
};

/** Shows what cannot be served: in the log, and in `sluice doctor`. */
export class ProblemNotes {
  private problems: ReadonlyMap<string, InventoryProblem> = new Map();
  private readonly endpoints: RequestEndpoints;
  private listed: readonly InventoryProblem[] = [];
  /** Of targets that do not join, by node. */
  private readonly troubles = new Map<string, InventoryProblem>();
  private readonly contests = new Map<string, InventoryProblem>();
  /** One after another: each replaces the one before. */
  private shown: Promise<void> = Promise.resolve();

  constructor(private readonly options: ProblemNotesOptions) {
    const { bus, targets, version, log: logger } = options;
    this.endpoints = new RequestEndpoints({
      bus,
      name: `applier-${targets}`,
      version,
      description: `applies config to ${targets}`,
      handlers: new Map(),
      logger,
    });
  }

  /** Another process takes a target over again and again, or no longer does. */
  contest(node: string, isContested: boolean): void {
    if (isContested) this.contests.set(node, { object: node, ...CONTEST });
    else if (!this.contests.delete(node)) return;
    this.update(this.listed);
  }

  /** Why a target of the inventory does not join; undefined if it does. */
  note(node: string, reason: string | undefined): void {
    const todo = 'correct its entry, or what is wrong there: the applier asks it again and again';
    if (reason !== undefined) this.troubles.set(node, { object: node, reason, todo });
    else if (!this.troubles.delete(node)) return;
    this.update(this.listed);
  }

  update(listed: readonly InventoryProblem[]): void {
    const { log } = this.options;
    this.listed = listed;
    // A target whose entry cannot be used does not join for the same reason.
    const known = new Set(listed.map(({ reason }) => reason));
    const troubles = [...this.troubles.values()].filter(({ reason }) => !known.has(reason));
    const all = [...listed, ...troubles, ...this.contests.values()];
    const now = new Map(all.map((problem) => [`${problem.object} ${problem.reason}`, problem]));
    for (const [key, { object, reason, todo }] of now)
      if (!this.problems.has(key)) log.warn({ object, todo }, `${object} is not served: ${reason}`);
    for (const [key, { object, reason }] of this.problems)
      if (!now.has(key)) log.info({ object }, `no longer so: ${object} is not served: ${reason}`);
    this.problems = now;
    this.shown = this.shown
      .then(() => this.endpoints.show({ leading: false, halted: '', answers: false, notes: notesOf(all) }))
      .catch((error: Error) => log.debug({ error: error.message }, 'sluice doctor cannot be told what is not served'));
  }

  async close(): Promise<void> {
    await this.shown;
    await this.endpoints.close();
  }
}

function notesOf(problems: readonly InventoryProblem[]): readonly ServiceNote[] {
  const notes = problems.slice(0, MOST_NOTES).map(({ object, reason, todo }): ServiceNote => ({
    state: 'bad',
    words: `${object} is not served: ${reason}`,
    todo,
  }));
  const more = problems.length - notes.length;
  if (more === 0) return notes;
  return [...notes, { state: 'bad', words: `${more} more are not served`, todo: 'see the log of the applier' }];
}
