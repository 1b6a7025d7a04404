import { fold, newCopy } from '#libs/kernel';
import { mergerCore, namedConfigs, type State } from '../../services/merger/src/core/index.js';
import { sha256 } from './digest.js';
import type { World } from './world.js';

/** A day, and the week that a config stays which nothing names, in the time of a run: longer than anything that is on its way. */
const EVERY_MS = 15_000;
const UNNAMED_MS = 3 * 60_000;

/**
 * What nothing names goes, in every run: it is nothing that anybody may notice. As in production a config is marked first, and rendering it again takes the
 * mark off; nothing goes while a merger has in hand what it rendered and has not appended.
 */
export function tidy(world: World): void {
  const core = mergerCore(sha256);
  const copy = newCopy(core);
  const reads = new Set<string>(core.reads);
  let named: ReadonlySet<string> = new Set();
  let known = '';
  const once = (): void => {
    const { bus } = world;
    const newest = `${bus.last} ${bus.viewsWritten}`;
    if (newest !== known) {
      fold(copy, { entries: bus.entries(copy.folded, bus.last, 0, reads), upTo: bus.last });
      named = namedNow(world, copy.state);
      known = newest;
    }
    sweep(world, named);
    world.clock.after(EVERY_MS, once);
  };
  world.clock.after(EVERY_MS, once);
}

function namedNow(world: World, state: State): ReadonlySet<string> {
  const { bus } = world;
  const views = <B extends 'status' | 'leases'>(bucket: B) =>
    bus.viewKeysOf(bucket).flatMap((key) => bus.view(bucket, key) ?? []);
  const statuses = views('status');
  if (world.mutant?.forgetsNames === true)
    return namedConfigs(new Forgetful(state), {
      statuses: statuses.map((status) => ({ ...status, desired: '' })),
      leases: [],
    });
  return namedConfigs(state, { statuses, leases: views('leases') });
}

/** Knows who is there, and nothing of what they are to get. */
class Forgetful {
  readonly nodes: State['nodes'];
  readonly desired = new Map<string, never>();
  readonly targets = new Map<string, never>();
  constructor(state: State) {
    this.nodes = state.nodes;
  }
}

function sweep(world: World, named: ReadonlySet<string>): void {
  const { bus, clock } = world;
  const isOnItsWay = world.serving('merger').some(({ copy }) => copy.gathered.size > 0);
  for (const key of [...bus.configs.keys()]) {
    const markedMs = bus.marked.get(key);
    if (named.has(key)) bus.marked.delete(key);
    else if (markedMs === undefined) bus.marked.set(key, clock.nowMs);
    else if (clock.nowMs - markedMs >= UNNAMED_MS && !isOnItsWay) {
      bus.configs.delete(key);
      bus.marked.delete(key);
      world.fire('tidying');
      world.trace(() => `nothing names the config ${key} any more: it is gone`);
    }
  }
}
