import { candidates, fold, newCopy, parseViewKey, readSnapshot } from '#libs/engine';
import type { ServiceCopy } from '../world/service-copy.js';
import { Violation, type Oracle, type World } from '../world/world.js';

/** A copy can always start from the stored data, and then shows the same as a copy that reads the whole ledger. */
export const recovery: Oracle = {
  name: 'recovery',
  onHalt(_world, copy, reason) {
    throw new Violation(`${copy.name} ${reason}`);
  },
  atEnd(world) {
    for (const copy of world.copies) if (copy.leading) compare(world, copy);
  },
};

function compare({ bus }: World, { kind: { core }, monotonicMs, reads }: ServiceCopy): void {
  const stored = candidates(core, bus.snapshotsOf(core.name), { first: bus.first, last: bus.last });
  const whole = newCopy(core);
  if (stored.length === 0) return;
  fold(whole, { entries: bus.entries(0, bus.last, monotonicMs, reads), upTo: bus.last });
  for (const { name, sequence } of stored) {
    const text = bus.snapshots.get(name)?.text;
    if (text === undefined) continue;
    const started = newCopy(core);
    started.state = core.load(readSnapshot(text)?.state, monotonicMs);
    started.folded = sequence;
    fold(started, { entries: bus.entries(sequence, bus.last, monotonicMs, reads), upTo: bus.last });
    for (const key of core.viewKeys(whole.state)) {
      const [shown, expected] = [started, whole].map(({ state }) =>
        JSON.stringify(core.view(state, parseViewKey(key))),
      );
      if (shown !== expected)
        throw new Violation(`a copy that starts from ${name} shows ${key} as ${shown}, not ${expected}`);
    }
  }
}
