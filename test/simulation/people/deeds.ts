import type { Chance } from '../world/chance.js';
import type { World } from '../world/world.js';
import { change, poolChange } from './manifests.js';

/** What somebody does to the fleet, once. */
export type Deed = (world: World, chance: Chance) => void;

/** Returns the id of the change. */
export function publish(world: World, body: object, source = 'people'): string {
  const change = `c${world.bus.publishChange(source, JSON.stringify(body))}`;
  world.trace(() => `people publish ${change} ${JSON.stringify(body)}`);
  return change;
}

export const publishChange: Deed = (world, chance) => void publish(world, change(world, chance));
export const publishPool: Deed = (world, chance) =>
  void publish(world, poolChange(chance, world.cluster !== undefined));

/** The same message comes twice: the publisher had no acknowledgement and gave no id. */
export const publishTwice: Deed = (world, chance) => {
  const body = change(world, chance);
  publish(world, body);
  world.clock.after(chance.next() * 3_000, () => publish(world, body));
};

/**
 * As the merger's shell does on `ops.config.retry`; of a change that was committed or superseded, as a person does who
 * publishes old content again.
 */
export const retry: Deed = (world, chance) => {
  const { changes } = world.bus;
  if (changes.length === 0) return;
  const { sequence, text } = chance.pick(changes);
  publish(world, { ...(JSON.parse(text) as object), author: 'people', retryOf: `c${sequence}` }, 'retry');
};

/** Mostly the newest change, for that is the one that is under way. */
function someChange(world: World, chance: Chance): string {
  const last = world.bus.changes.length;
  return `c${chance.happens(0.7) ? last : chance.whole(1, last)}`;
}

export const steer =
  (op: 'pause' | 'resume' | 'abort'): Deed =>
  (world, chance) =>
    world.ask('scheduler', { op: `rollout.${op}`, change: someChange(world, chance), by: 'people', reason: '' });

export const clear: Deed = (world, chance) => {
  const known = world.bus.viewKeysOf('known-bad').filter((key) => key.startsWith('config.'));
  if (known.length > 0)
    world.ask('validator', { op: 'clear', hash: chance.pick(known).slice(7), by: 'people', reason: 'because' });
};

export const skip: Deed = (world, chance) => {
  const node = chance.pick([...world.nodes.keys()]);
  world.excused.add(node);
  world.ask('scheduler', { op: 'node.skip', node, by: 'people', reason: '' });
};

export function remove(world: World, node: string): void {
  world.excused.add(node);
  world.ask('inventory', { op: 'remove', node, force: true, by: 'people', reason: '' });
}
export const removeAny: Deed = (world, chance) => remove(world, chance.pick([...world.nodes.keys()]));

export const askWhy: Deed = (world, chance) =>
  world.ask('scheduler', { op: 'node.why', node: chance.pick([...world.nodes.keys()]) });

export const relabel: Deed = (world, chance) => {
  const node = chance.pick([...world.nodes.values()]);
  node.relabel({
    ...node.labels,
    zone: chance.pick(['a', 'b', 'c']),
    ...(chance.happens(0.3) ? { role: chance.pick(['edge', 'core', 'none']) } : {}),
    ...(chance.happens(0.3) ? { mood: chance.pick(['ok', 'sad']) } : {}),
  });
};

/** At the end people let everything run that they paused; some also clear away what was switched off for good. */
export function letGo(world: World, clears: boolean): void {
  for (const node of clears ? world.nodes.values() : []) if (node.scrapped) remove(world, node.name);
  for (const { sequence } of world.bus.changes) resume(world, `c${sequence}`);
}

/** Asked until there is an answer. */
function resume(world: World, paused: string): void {
  world.ask('scheduler', { op: 'rollout.resume', change: paused, by: 'people', reason: '' }, (answer) => {
    if (answer === undefined) world.clock.after(5_000, () => resume(world, paused));
  });
}
