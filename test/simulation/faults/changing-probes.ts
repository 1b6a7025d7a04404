import { publish } from '../people/deeds.js';
import { probeChange } from '../people/manifests.js';
import type { Fault } from './fault.js';

/** Probes that change together with what they check, and sometimes do not match it. */
export const changingProbes: Fault = {
  name: 'changing-probes',
  about: 'people change a probe together with the file that it checks; sometimes it cannot pass',
  countsEffects: true,
  arrange(stage) {
    const { world } = stage;
    const published = new Set<string>();
    world.listeners.push((fact) => {
      if (fact.type !== 'node.lease.settled' || fact.kind !== 'forward') return;
      if (published.has(fact.change) && fact.reason.includes('must pass after this change')) stage.tookEffect();
    });
    stage.nowAndThen(150_000, (chance) => void published.add(publish(world, probeChange(world, chance))));
  },
};
