import { KEEP_PAUSED_ANNOTATION, PAUSE_ANNOTATION, pauseAnnotationOf } from '#libs/contracts';
import { parseDrain } from '#libs/manifests';
import type { PausableObject } from '../kubernetes/pausables.js';
import { Violation, type Oracle, type World } from '../world/world.js';

interface Need {
  readonly node: string;
  readonly names: readonly string[];
  readonly drained: boolean;
}

/**
 * Objects that pools name are paused while a node of the pool is drained and changes, unless a person unpaused them.
 * Sluice unpauses only what it paused, and only after the last drain that needs it; in the end, it leaves nothing
 * paused. Reads the objects, and the truth about who did what.
 */
export function pauses(): Oracle {
  /** The leases that need objects paused, until they are over. Those whose pool changed in the middle need less. */
  const needs = new Map<string, Need>();
  const amended = new Set<string>();
  const over = (lease: string): unknown => needs.delete(lease);
  const mustBePaused = (world: World, lease: string, what: string): void => {
    for (const name of amended.has(lease) ? [] : (needs.get(lease)?.names ?? [])) {
      const object = world.cluster?.pausables.objects.get(name);
      // A person may have created it again, or unpaused it, at any moment.
      if (object === undefined || object.paused || object.setBy !== 'sluice') continue;
      throw new Violation(`${what} for ${lease}, and ${name} is not paused`);
    }
  };
  return {
    name: 'I5 pauses',
    onFact(_world, fact) {
      if (fact.type === 'node.lease.granted' && fact.phase === 'draining') {
        const names = parseDrain(fact.drain ?? {}).pause.map(({ name }) => name);
        if (names.length > 0) needs.set(fact.lease, { node: fact.node, names, drained: false });
      }
      const need = 'lease' in fact ? needs.get(fact.lease) : undefined;
      if (need === undefined || !('lease' in fact)) return;
      if (fact.type === 'node.lease.amended') amended.add(fact.lease);
      if (fact.type === 'node.drained') needs.set(fact.lease, { ...need, drained: true });
      const isOver =
        fact.type === 'node.drain.stopped' ||
        fact.type === 'node.lease.uncordoning' ||
        fact.type === 'node.lease.released' ||
        (fact.type === 'node.lease.settled' && !need.drained);
      if (isOver) over(fact.lease);
    },
    onPodEnd(world, pod) {
      const [lease] = [...needs].find(([, { node }]) => node === pod.on) ?? [];
      if (lease !== undefined) mustBePaused(world, lease, `${pod.name} is to end`);
    },
    onWrite(world, node) {
      const lease = node.journal.work?.lease ?? '';
      if (needs.get(lease)?.drained === true) mustBePaused(world, lease, `${node.name} changes`);
    },
    onPauseWrite(world, before, after, by) {
      if (by !== 'sluice' || !before.paused || after.paused) return;
      if (before.setBy !== 'sluice') throw new Violation(`Sluice unpauses ${before.name}, which it had not paused`);
      if (before.annotations[KEEP_PAUSED_ANNOTATION] !== undefined)
        throw new Violation(`Sluice unpauses ${before.name}, which somebody wants kept`);
      const inNeed = [...needs].find(
        ([lease, { node, names }]) =>
          pauseAnnotationOf(before.annotations)?.lease === lease ||
          (!amended.has(lease) && names.includes(before.name) && world.cluster?.heldFor(node) === lease),
      );
      if (inNeed !== undefined) throw new Violation(`Sluice unpauses ${before.name}, which ${inNeed[0]} needs paused`);
    },
    atEnd(world) {
      for (const object of world.cluster?.pausables.objects.values() ?? [])
        if (isLeft(object) && needs.size === 0)
          throw new Violation(`${object.name} is left behind: ${JSON.stringify(object)}`);
    },
  };
}

const isLeft = ({ paused, setBy, annotations }: PausableObject): boolean =>
  annotations[PAUSE_ANNOTATION] !== undefined || (paused && setBy === 'sluice');
