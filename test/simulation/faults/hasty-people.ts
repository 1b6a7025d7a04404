import type { FactType } from '#libs/contracts';
import * as deeds from '../people/deeds.js';
import type { Fault } from './fault.js';

/** Facts after which a request is most dangerous. */
const MOMENTS: ReadonlySet<FactType> = new Set<FactType>([
  'config.accepted',
  'config.rendered',
  'config.validated',
  'config.committed',
  'config.judged',
  'rollout.started',
  'rollout.failed',
  'rollout.reverting',
  'rollout.complete',
  'rollout.superseded',
  'node.lease.granted',
  'node.lease.applying',
  'node.lease.settled',
  'node.lease.uncordoning',
  'node.unknown',
  'node.rendered',
]);
const DEEDS: readonly deeds.PersonAction[] = [
  deeds.steer('pause'),
  deeds.steer('resume'),
  deeds.steer('abort'),
  deeds.retry,
  deeds.clear,
  deeds.skip,
  deeds.removeAny,
  deeds.publishChange,
  deeds.publishTwice,
  deeds.publishPool,
  deeds.relabel,
];
/** People are hasty, but not forever. */
const MOST = 25;

export const hastyPeople: Fault = {
  name: 'hasty-people',
  about: 'people pause, abort, retry, clear, skip, remove, publish and change pools right behind a fact',
  arrange(stage) {
    const { world } = stage;
    let done = 0;
    world.listeners.push((fact) => {
      if (world.clock.nowMs >= stage.endMs || done >= MOST || !MOMENTS.has(fact.type) || !stage.chance.flip(0.08))
        return;
      done += 1;
      const afterMs = stage.chance.next() * stage.chance.pick([0, 10, 1_000]);
      world.clock.after(afterMs, () => stage.occur((chance) => chance.pick(DEEDS)(world, chance)));
    });
  },
};
