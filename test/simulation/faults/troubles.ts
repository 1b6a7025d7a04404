import { NO_TROUBLE, type Trouble } from '../world/performer.js';
import type { Chance } from '../world/chance.js';
import type { Fault } from './fault.js';

/** A temporary problem of one machine. */
const trouble = <K extends keyof Trouble>(
  name: string,
  about: string,
  what: K,
  worse: (chance: Chance) => Trouble[K],
  forMs: readonly number[],
): Fault => ({
  name,
  about,
  countsEffects: true,
  arrange(stage) {
    stage.nowAndThen(60_000, (chance) => {
      const node = stage.anyNode(chance);
      node.trouble = { ...node.trouble, [what]: worse(chance) };
      stage.world.clock.after(chance.next() * chance.pick(forMs), () => {
        node.trouble = { ...node.trouble, [what]: NO_TROUBLE[what] };
      });
    });
  },
});

export const flappingProbes = trouble(
  'flapping-probes',
  'probes of a machine say now this, now that',
  'flapping',
  (chance) => chance.pick([0.2, 0.5]),
  [60_000, 300_000],
);
export const failingProbes = trouble(
  'failing-probes',
  'the probes of a machine fail for a while, whatever its files say',
  'failing',
  () => true,
  [20_000, 90_000, 300_000],
);
export const fullDisks = trouble(
  'full-disks',
  'nothing can be written on a machine for a while, journal included',
  'full',
  () => true,
  [5_000, 90_000, 300_000],
);
export const readOnlyFiles = trouble(
  'read-only-files',
  'a file of a machine cannot be written for a while, nor during a rollback',
  'readOnly',
  (chance) => [chance.pick(['/etc/app', '/etc/b'])],
  [30_000, 300_000],
);
