import type { Action } from '#libs/contracts';
import type { Refusal } from '../../../services/applier/src/core/index.js';
import type { Disk } from './disk.js';
import type { Participant, Surroundings } from './surroundings.js';

/** The file of the only unit. */
export const UNIT_FILE = '/etc/b';
export const unitStartsWith = (content: string | undefined): boolean => content?.startsWith('bad') !== true;
/** How long a machine takes to go down and to boot. Some take longer than their lease lasts. */
const DOWN_MS = [500, 3_000, 3_000, 70_000];
const UP_MS = [2_000, 8_000, 8_000, 90_000];

/** The node of a machine, as the machine sees it. */
export interface Host extends Participant {
  readonly world: Surroundings;
  readonly disk: Disk;
  readonly scrapped: boolean;
  start(): void;
  reboot(): void;
}

/** What a machine runs, which its files alone do not tell: a unit with the content with which it was started. */
export class Machine {
  /** Undefined if there was no file. */
  running: string | undefined;
  private failed = false;
  /** The number of restarts. A restart has no effect if it was overtaken by another one, or by another disk. */
  private boots = 0;

  constructor(private readonly node: Host) {}

  /** Starts everything with the current files. */
  booted(): void {
    this.boots += 1;
    this.start();
  }

  act(action: Action): Refusal | undefined {
    const { world } = this.node;
    const { kind } = action;
    world.onAct(this.node, action);
    if (world.mutant?.onlySaysActed === true) return undefined;
    if (kind === 'reboot') return this.restart();
    if (kind !== 'restart') return undefined;
    this.start();
    if (!this.failed) return undefined;
    return world.mutant?.restartsUnasked === true
      ? this.act({ kind: 'reboot' })
      : { fault: 'node', reason: 'b.service does not start' };
  }

  readUnit(): Refusal | undefined {
    return this.failed ? { fault: 'node', reason: 'b.service has failed' } : undefined;
  }

  private start(): void {
    this.running = this.node.disk.files.get(UNIT_FILE);
    this.failed = !unitStartsWith(this.running);
  }

  /**
   * The applier learns at once that the restart begins. Some machines never go down, and a machine that is switched off
   * reports nothing.
   */
  private restart(): undefined {
    const { node } = this;
    const { chance, clock } = node.world;
    const [downMs, upMs, hangs] = [chance.pick(DOWN_MS), chance.pick(UP_MS), chance.flip(0.1)];
    const { boots } = this;
    if (hangs) return;
    clock.after(downMs, () => {
      if (this.boots !== boots || node.scrapped) return;
      node.world.trace(() => `${node.name} restarts`);
      node.world.fire('restarts');
      node.reboot();
      const now = this.boots;
      clock.after(upMs, () => {
        if (this.boots === now) node.start();
      });
    });
  }
}
