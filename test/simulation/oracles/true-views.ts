import { fold, newCopy, parseViewKey, viewKey } from '#libs/engine';
import { Violation, type Oracle, type World } from '../world/world.js';
import type { ServiceCopy } from '../world/service-copy.js';

/** I7: when nothing is in progress, every view shows what a new copy computes from the ledger, and no other is left. */
export const trueViews: Oracle = {
  name: 'I7 true views',
  atEnd(world) {
    const leaders = world.copies.filter((copy) => copy.leading);
    for (const leader of leaders) compare(world, leader);
  },
};

function compare(world: World, leader: ServiceCopy): void {
  const { core } = leader.kind;
  const fresh = newCopy(core);
  fold(fresh, {
    entries: world.bus.entries(0, world.bus.last, leader.monotonicMs, leader.reads),
    upTo: world.bus.last,
  });
  const known = new Set(core.viewKeys(fresh.state));
  for (const bucket of core.forgets ?? [])
    for (const key of world.bus.viewKeysOf(bucket))
      if (!known.has(viewKey(bucket, key))) throw new Violation(`${viewKey(bucket, key)} should be deleted`);
  for (const text of known) {
    const key = parseViewKey(text);
    const value = core.view(fresh.state, key);
    if (value === undefined) continue;
    const { ledger, text: shown } = world.bus.revision(key);
    const expected = JSON.stringify({ ...value, ledger });
    if (shown !== expected)
      throw new Violation(`${text} shows ${shown === '' ? 'nothing' : shown}, and should show ${expected}`);
  }
}
