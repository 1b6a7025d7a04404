import { sourceOf } from '#libs/contracts';
import type { Chance } from '../world/chance.js';
import type { World } from '../world/world.js';
import {
  addressChange,
  boundChange,
  change,
  commandChange,
  poolChange,
  referringChange,
  serviceChange,
  valuesOf,
} from './manifests.js';

/** One action of a person on the fleet. */
export type PersonAction = (world: World, chance: Chance) => void;

/** Returns the id of the change. */
export function publish(world: World, body: object, source = 'people', id?: string): string {
  const change = `c${world.bus.publishChange(source, JSON.stringify(body), world.clock.nowMs, id)}`;
  world.trace(() => `${source} publish ${change} ${id ?? ''} ${JSON.stringify(body)}`);
  return change;
}

export const publishChange: PersonAction = (world, chance) => void publish(world, change(world, chance));
export const publishPool: PersonAction = (world, chance) =>
  void publish(world, poolChange(chance, world.cluster !== undefined));

/** The same message arrives twice: the publisher got no acknowledgement and used no id. */
export const publishTwice: PersonAction = (world, chance) => {
  const body = change(world, chance);
  publish(world, body);
  world.clock.after(chance.next() * 3_000, () => publish(world, body));
};

/**
 * As the merger's shell does on `ops.config.retry`. For a change that was committed or superseded, like a person who
 * publishes old content again.
 */
export const retry: PersonAction = (world, chance) => {
  const { changes } = world.bus;
  if (changes.length === 0) return;
  const { sequence, subject, text } = chance.pick(changes);
  const body = { ...(JSON.parse(text) as object), author: 'people', retryOf: `c${sequence}` };
  publish(world, body, sourceOf(subject));
};

/**
 * As the merger's shell does on `ops.config.rollback`. Mostly of a recent change, because few others can be rolled
 * back.
 */
export const rollBack: PersonAction = (world, chance) => {
  const { changes } = world.bus;
  if (changes.length === 0) return;
  const { sequence, subject } = chance.pick(chance.flip(0.7) ? changes.slice(-4) : changes);
  publish(world, { rollbackOf: `c${sequence}`, author: 'people', takeOver: true }, sourceOf(subject));
};

/**
 * A change that may refer to something that does not exist, or take away what others refer to. What one source refers
 * to may come from another one, and people may lose patience.
 */
export const publishReferring: PersonAction = (world, chance) => {
  const isOther = chance.flip(0.3);
  const body = { ...referringChange(world, chance), ...(isOther ? { takeOver: true } : {}) };
  const referring = publish(world, body, isOther ? 'ci' : 'people');
  const abort = { op: 'rollout.abort', change: referring, by: 'people', reason: '' };
  if (chance.flip(0.2)) world.clock.after(chance.next() * 60_000, () => world.ask('scheduler', abort));
};

/** A service with a host name, which may have no addresses yet. Or the end of one. */
export const publishService: PersonAction = (world, chance) => void publish(world, serviceChange(world, chance));

/** Commands, good and bad, or the end of one. */
export const publishCommand: PersonAction = (world, chance) => void publish(world, commandChange(world, chance));

/** As the merger's shell does when it has looked a name up, or when nothing has used the name any more. */
export const publishAddresses: PersonAction = (world, chance) =>
  void publish(world, addressChange(world, chance), 'names');

/** Objects with a value of their node, which may not have been read yet. Or the end of some. */
export const publishBound: PersonAction = (world, chance) => void publish(world, boundChange(world, chance));

/**
 * As the merger does when appliers have read values, for some nodes at a time. What it replaces may be outdated, and
 * another copy may publish the same.
 */
export const publishValues: PersonAction = (world, chance) => {
  const nodes = [...world.nodes.keys()].filter(() => chance.flip(0.5));
  if (nodes.length === 0) return;
  const apply = nodes.map((node) => {
    const replaced = world.bus.ledger.flatMap(({ fact }) =>
      fact.type === 'config.accepted' && fact.source === 'bindings' && fact.rollbackOf === undefined
        ? [...fact.apply, ...fact.delete].flatMap(({ name }) => (name === node ? fact.change : []))
        : [],
    );
    return valuesOf(world, chance, node, replaced.at(chance.flip(0.1) ? -2 : -1) ?? '');
  });
  const id = chance.flip(0.5) ? `values-${world.bus.changes.length}` : undefined;
  const body = { apply };
  publish(world, body, 'bindings', id);
  if (chance.flip(0.2)) world.clock.after(chance.next() * 3_000, () => publish(world, body, 'bindings', id));
};

/** A change with a pace of its own. */
export const publishPaced: PersonAction = (world, chance) => {
  const maxUnavailable = chance.pick([1, 2, '1%', '50%', '100%']);
  const maxFailures = chance.pick([0, 1, 3]);
  publish(world, { ...change(world, chance), strategy: { maxUnavailable, maxFailures } });
};

/**
 * The tool `ci` publishes what people also publish: with or without taking it over, again with the same id, or with an
 * id that it has used for something else. People may use the same id.
 */
export const publishAsOther: PersonAction = (world, chance) => {
  const body = { ...change(world, chance), ...(chance.flip(0.4) ? { takeOver: true } : {}) };
  const id = chance.flip(0.7) ? `build-${chance.integer(1, 9)}` : undefined;
  const publishOnce = (): string => publish(world, body, 'ci', id);
  publishOnce();
  if (chance.flip(0.4)) world.clock.after(chance.next() * 3_000, publishOnce);
  if (id !== undefined && chance.flip(0.3)) publish(world, change(world, chance), 'people', id);
};

/** Mostly the newest change, because that one is in progress. */
function someChange(world: World, chance: Chance): string {
  const last = world.bus.changes.length;
  return `c${chance.flip(0.7) ? last : chance.integer(1, last)}`;
}

export const steer =
  (op: 'pause' | 'resume' | 'abort'): PersonAction =>
  (world, chance) =>
    world.ask('scheduler', { op: `rollout.${op}`, change: someChange(world, chance), by: 'people', reason: '' });

export const clear: PersonAction = (world, chance) => {
  const known = world.bus.viewKeysOf('known-bad').filter((key) => key.startsWith('config.'));
  if (known.length > 0)
    world.ask('validator', { op: 'clear', hash: chance.pick(known).slice(7), by: 'people', reason: 'because' });
};

export const skip: PersonAction = (world, chance) => {
  const node = chance.pick([...world.nodes.keys()]);
  world.excused.add(node);
  world.ask('scheduler', { op: 'node.skip', node, by: 'people', reason: '' });
};

export function remove(world: World, node: string): void {
  world.excused.add(node);
  world.ask('inventory', { op: 'remove', node, force: true, by: 'people', reason: '' });
}
export const removeAny: PersonAction = (world, chance) => remove(world, chance.pick([...world.nodes.keys()]));

export const askWhy: PersonAction = (world, chance) =>
  world.ask('scheduler', { op: 'node.why', node: chance.pick([...world.nodes.keys()]) });

export const relabel: PersonAction = (world, chance) => {
  const node = chance.pick([...world.nodes.values()]);
  node.relabel({
    ...node.labels,
    zone: chance.pick(['a', 'b', 'c']),
    ...(chance.flip(0.3) ? { role: chance.pick(['edge', 'core', 'none']) } : {}),
    ...(chance.flip(0.3) ? { mood: chance.pick(['ok', 'sad']) } : {}),
  });
};

/** In the end, people resume everything that they paused. Some also remove what was switched off for good. */
export function resumeAll(world: World, clears: boolean): void {
  for (const node of clears ? world.nodes.values() : []) if (node.scrapped) remove(world, node.name);
  for (const { sequence } of world.bus.changes) resume(world, `c${sequence}`);
}

/** Repeats the request until there is an answer. */
function resume(world: World, paused: string): void {
  world.ask('scheduler', { op: 'rollout.resume', change: paused, by: 'people', reason: '' }, (answer) => {
    if (answer === undefined) world.clock.after(5_000, () => resume(world, paused));
  });
}
