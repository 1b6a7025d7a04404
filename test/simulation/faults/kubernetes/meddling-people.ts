import { KEEP_CORDONED_ANNOTATION, type FactType } from '#libs/contracts';
import type { Chance } from '../../world/chance.js';
import type { Cluster } from '../../kubernetes/cluster.js';
import type { Fault } from '../fault.js';

/** Facts after which a kubectl command is most dangerous. */
const MOMENTS: ReadonlySet<FactType> = new Set<FactType>([
  'node.lease.granted',
  'node.lease.amended',
  'node.cordoned',
  'node.drained',
  'node.lease.applying',
  'node.lease.settled',
  'node.lease.uncordoning',
  'node.uncordoned',
]);
/** People meddle, but not forever. */
const MOST = 40;

export const meddlingPeople: Fault = {
  name: 'meddling-people',
  about: 'people cordon and uncordon Nodes before, during and after drains, and mark some to be kept so',
  arrange(stage) {
    const { world } = stage;
    const { cluster } = world;
    if (cluster === undefined) return;
    let done = 0;
    const meddle =
      (name: string) =>
      (chance: Chance): void =>
        kubectl(cluster, name, chance);
    stage.nowAndThen(60_000, (chance) => kubectl(cluster, stage.anyNode(chance).name, chance));
    world.listeners.push((fact) => {
      if (
        world.clock.nowMs >= stage.endMs ||
        done >= MOST ||
        !MOMENTS.has(fact.type) ||
        !('node' in fact) ||
        !stage.chance.flip(0.15)
      )
        return;
      done += 1;
      world.clock.after(stage.chance.next() * stage.chance.pick([5, 50, 5_000]), () => {
        if (world.clock.nowMs < stage.endMs) stage.occur(meddle(fact.node));
      });
    });
  },
};

function kubectl(cluster: Cluster, name: string, chance: Chance): void {
  const what = chance.pick(['cordon', 'cordon', 'uncordon', 'uncordon', 'twice', 'keep', 'label'] as const);
  if (what === 'keep') cluster.write(name, { annotations: { [KEEP_CORDONED_ANNOTATION]: 'please' } }, 'person');
  else if (what === 'label') cluster.write(name, { labels: { zone: chance.pick(['a', 'b']) } }, 'person');
  else {
    if (what === 'twice') cluster.write(name, { unschedulable: false }, 'person');
    cluster.write(name, { unschedulable: what !== 'uncordon' }, 'person');
  }
}
