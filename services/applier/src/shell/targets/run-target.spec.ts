import { REMOTE_APPLIER } from '#libs/contracts';
import { until } from '#libs/testing';
import { config, file } from '../applier-host.fixture.js';
import { decodeJournal } from '../state/journal-text.js';
import { AT_ONCE, Scene } from './device.fixture.js';

const OLD = config(file('a', 'x'), file('b', 'x'));
const NEW = config(file('a', 'y'), file('b', 'y'));
const BEFORE = { a: 'x', b: 'x' };
const AFTER = { a: 'y', b: 'y' };

let scene: Scene;
beforeEach(() => {
  scene = new Scene();
});
afterEach(() => scene.end());

const journal = () => {
  const text = scene.journals.stored.get('f-1')?.text ?? '';
  const decoded = decodeJournal(text.slice(text.indexOf('\n') + 1));
  if (typeof decoded === 'string') throw new Error(decoded);
  return { ...decoded, work: decoded.work, owner: text.slice(0, text.indexOf('\n')) };
};

/** Holds a copy forever at the given call, counted from now. Returns how many calls it has made, and releases it. */
function freeze(copy: string, at: number): { readonly calls: () => number; readonly thaw: () => void } {
  let calls = 0;
  let thaw: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (thaw = resolve));
  const gate = (name: string): Promise<void> => {
    if (name !== copy) return Promise.resolve();
    calls += 1;
    return calls > at ? held : Promise.resolve();
  };
  scene.device.gate = gate;
  scene.journals.gate = gate;
  return { calls: () => calls, thaw };
}

/** Holds a copy forever at its first call after it has begun a lease. */
function freezeAtWork(copy: string): { readonly isHeld: () => boolean } {
  let isHeld = false;
  const gate = (name: string): Promise<void> => {
    if (name !== copy || journal().work === undefined) return Promise.resolve();
    isHeld = true;
    return new Promise(() => undefined);
  };
  scene.device.gate = gate;
  scene.journals.gate = gate;
  return { isHeld: () => isHeld };
}

it('applies and rolls back like an applier on a machine, with its journal in the bucket', async () => {
  scene.device.values.set('a', 'mine');
  await scene.first('one');
  expect((await scene.bus.roll(OLD)).verdict).toBe('applied');
  expect(scene.bus.reports[0]).toMatchObject({ kind: 'announced', labels: { role: 'edge' } });
  expect(scene.bus.reports[0]?.capabilities).toEqual([REMOTE_APPLIER, 'kind:File'].sort());
  expect([scene.values, journal().inForce]).toEqual([BEFORE, scene.bus.store(OLD)]);
  expect((await scene.bus.roll(config())).verdict).toBe('applied');
  expect(scene.values).toEqual({ a: 'mine' });
});

it('sends no heartbeat while the target does not answer, and answers a lease with unreachable', async () => {
  await scene.first('one');
  await scene.bus.roll(OLD);
  await until(() => scene.bus.beats.length > 2);
  scene.device.isGone = true;
  expect(await scene.bus.roll(NEW)).toMatchObject({ verdict: 'unreachable', kind: 'unreachable', untouched: true });
  const beats = scene.bus.beats.length;
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(scene.bus.beats.length).toBe(beats);
  scene.device.isGone = false;
  await until(() => scene.bus.beats.length > beats);
  expect((await scene.bus.roll(NEW)).verdict).toBe('applied');
  expect(scene.values).toEqual(AFTER);
});

describe('what reports say about a target', () => {
  const says = (reason: string | undefined) =>
    scene.bus.reported(({ kind, unavailable }) => kind === 'announced' && unavailable === reason);
  const NO_ANSWER = 'no answer in 10 s';
  const reasons = () => scene.bus.reports.map(({ unavailable }) => unavailable);

  it('is that it does not answer, as soon as that is known, and that it does again', async () => {
    await scene.first('one');
    scene.device.isGone = true;
    await says(NO_ANSWER);
    scene.device.isGone = false;
    await until(() => reasons().at(-1) === undefined, 'it says that it answers');
    expect(reasons()).toEqual([undefined, NO_ANSWER, undefined]);
  });

  it('is why the inventory knows that it cannot be used, also while it does not answer', async () => {
    const one = await scene.first('one');
    one.setUnavailable('control plane not ready');
    await says('control plane not ready');
    scene.device.isGone = true;
    const { asked } = scene.device;
    await until(() => scene.device.asked > asked + 2);
    one.setUnavailable(undefined);
    await says(NO_ANSWER);
    scene.device.isGone = false;
    await until(() => reasons().at(-1) === undefined, 'it says that it answers');
    expect(reasons()).toEqual([undefined, 'control plane not ready', NO_ANSWER, undefined]);
  });

  it('is what the last copy has said, until the next one has asked the target', async () => {
    const one = await scene.first('one');
    scene.device.isGone = true;
    await says(NO_ANSWER);
    await one.stop(AT_ONCE);
    const count = reasons().length;
    const two = await scene.copy('two');
    await until(() => reasons().length > count);
    expect(reasons().slice(count)).toEqual([NO_ANSWER]);
    await two.stop(AT_ONCE);
    scene.device.isGone = false;
    await scene.copy('three');
    await until(() => reasons().at(-1) === undefined, 'it says that it answers');
  });

  it('does not change when a copy that lost the target sees that it does not answer', async () => {
    await scene.first('one');
    const frozen = freeze('one', 0);
    await scene.copy('two');
    await until(() => reasons().length > 1);
    // Its next write of the journal is refused, and nothing is reported before that.
    scene.device.goneFor = 'one';
    frozen.thaw();
    await until(() => scene.lost.includes('one'), 'it knows that it lost the target');
    expect(reasons().filter((reason) => reason !== undefined)).toEqual([]);
  });
});

it('does not join with a target that has never answered', async () => {
  scene.device.isGone = true;
  const one = await scene.copy('one');
  await until(() => scene.device.asked > 2);
  expect([scene.bus.reports, scene.bus.beats]).toEqual([[], []]);
  scene.device.isGone = false;
  await scene.bus.reported(({ kind }) => kind === 'announced');
  scene.device.isGone = true;
  await one.stop(AT_ONCE);
  expect(journal().owner).toBe('');
});

it('a target that is lost in the middle of a lease is rolled back when it answers again', async () => {
  await scene.first('one');
  await scene.bus.roll(OLD);
  const write = scene.device.values.set.bind(scene.device.values);
  scene.device.values.set = (key, value) => {
    scene.device.isGone = true;
    return write(key, value);
  };
  expect(await scene.bus.roll(NEW)).toMatchObject({ verdict: 'unreachable', restored: false });
  expect(scene.values).not.toEqual(BEFORE);
  scene.device.values.set = write;
  scene.device.isGone = false;
  await scene.bus.reported(({ kind, restored, seq }) => kind === 'announced' && restored && seq > 3);
  expect(scene.values).toEqual(BEFORE);
});

/** How many calls to the target and the bucket one lease takes. */
const CALLS = 16;

describe('two copies', () => {
  it('one that lost the target can begin nothing, although it believes that it has it', async () => {
    await scene.first('one');
    await scene.bus.roll(OLD);
    await scene.copy('two');
    expect(journal().owner).toBe('two');
    // Both hear of the lease, and one of them carries it out.
    expect((await scene.bus.roll(NEW)).verdict).toBe('applied');
    await until(() => scene.lost.length > 0);
    expect([scene.lost, scene.values, journal().owner]).toEqual([['one'], AFTER, 'two']);
  });

  it('one that stops hands the target over, and the next one continues its lease at once', async () => {
    const one = await scene.first('one');
    await scene.bus.roll(OLD);
    await one.stop(AT_ONCE);
    expect(journal().owner).toBe('');
    await scene.copy('two');
    expect((await scene.bus.roll(NEW)).verdict).toBe('applied');
  });

  it('one that does not lead any more finishes its lease, and then hands the target over', async () => {
    const one = await scene.first('one');
    await scene.bus.roll(OLD);
    const { calls, thaw } = freeze('one', 8);
    const lease = scene.bus.grant(NEW, { applyMs: 60_000 });
    await until(() => journal().work !== undefined && calls() > 8);
    const stopped = one.stop(new AbortController().signal);
    scene.journals.isDown = true;
    thaw();
    await until(() => JSON.stringify(scene.values) === JSON.stringify(AFTER));
    expect(journal()).toMatchObject({ owner: 'one', work: { lease } });
    scene.journals.isDown = false;
    await stopped;
    expect(journal()).toMatchObject({ owner: '', work: undefined, inForce: scene.bus.store(NEW) });
  });

  it('one that is stopped hands its lease over, and one on another machine finishes it', async () => {
    const one = await scene.first('one');
    await scene.bus.roll(OLD);
    const { calls, thaw } = freeze('one', 8);
    const lease = scene.bus.grant(NEW, { applyMs: 60_000 });
    await until(() => journal().work !== undefined && calls() > 8);
    const stopping = new AbortController();
    const stopped = one.stop(stopping.signal);
    stopping.abort();
    thaw();
    await stopped;
    expect(journal()).toMatchObject({ owner: '', work: { lease } });
    await scene.copy('two');
    expect(await scene.bus.reported((report) => report.lease === lease)).toMatchObject({ verdict: 'applied' });
    expect(scene.values).toEqual(AFTER);
  });

  it('one that starts waits for the deadline of a lease on which a killed one may work', async () => {
    await scene.first('one');
    await scene.bus.roll(OLD);
    freeze('one', 8);
    scene.bus.grant(NEW, { applyMs: 60_000 });
    await until(() => journal().work !== undefined);
    let isClaimed = false;
    const two = scene.copy('two').then(() => (isClaimed = true));
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(isClaimed).toBe(false);
    scene.aheadMs = 80_000;
    await two;
    await scene.bus.reported(({ verdict }) => verdict === 'unreachable');
    expect([scene.values, journal().work]).toEqual([BEFORE, undefined]);
  });

  it('one on another machine gets a lease although the config in force has expired, as after a removal', async () => {
    const one = await scene.first('one');
    await scene.bus.roll(OLD);
    await one.stop(AT_ONCE);
    scene.bus.expire(OLD);
    await scene.copy('two');
    const hash = scene.bus.store(NEW);
    const lease = scene.bus.grant(NEW);
    expect(await scene.bus.reported((report) => report.lease === lease)).toMatchObject({ verdict: 'applied', hash });
    await until(() => scene.journals.configs.size === 1, 'only the config in force is kept');
    expect([...scene.journals.configs.keys()]).toEqual([hash]);
  });

  it.each(Array.from({ length: CALLS }, (_, at) => at))(
    'one that is paused at call %i of a lease does no harm when it continues after another took over',
    async (at) => {
      await scene.first('one');
      await scene.bus.roll(OLD);
      const { calls, thaw } = freeze('one', at);
      const lease = scene.bus.grant(NEW, { applyMs: 60_000 });
      await until(() => calls() > at || scene.bus.reports.some((report) => report.lease === lease));
      const isDone = scene.bus.reports.some((report) => report.lease === lease);
      scene.aheadMs = 80_000;
      await scene.copy('two');
      const { verdict } = await scene.bus.reported((report) => report.lease === lease);
      thaw();
      if (!isDone) await until(() => scene.lost.includes('one'));
      expect(journal()).toMatchObject({ owner: 'two', sound: true, work: undefined });
      expect(scene.values).toEqual(verdict === 'applied' ? AFTER : BEFORE);
      expect(journal().inForce).toBe(scene.bus.store(verdict === 'applied' ? NEW : OLD));
    },
  );
});

describe('a target on which a lease may be repeated', () => {
  beforeEach(() => {
    scene.isRepeatable = true;
  });

  it('is taken over in the middle of a lease, which the new copy finishes', async () => {
    await scene.first('one');
    await scene.bus.roll(OLD);
    const { isHeld } = freezeAtWork('one');
    const lease = scene.bus.grant(NEW, { applyMs: 6 * 3_600_000 });
    await until(isHeld);
    await scene.copy('two');
    expect(await scene.bus.reported((report) => report.lease === lease)).toMatchObject({ verdict: 'applied' });
    expect([scene.values, journal().inForce, journal().owner]).toEqual([AFTER, scene.bus.store(NEW), 'two']);
  });

  it.each(Array.from({ length: CALLS }, (_, at) => at))(
    'suffers no harm from a copy that is paused at call %i of a lease, and continues after another has finished it',
    async (at) => {
      await scene.first('one');
      await scene.bus.roll(OLD);
      const { calls, thaw } = freeze('one', at);
      const lease = scene.bus.grant(NEW, { applyMs: 6 * 3_600_000 });
      await until(() => calls() > at || scene.bus.reports.some((report) => report.lease === lease));
      const isDone = scene.bus.reports.some((report) => report.lease === lease);
      await scene.copy('two');
      expect(await scene.bus.reported((report) => report.lease === lease)).toMatchObject({ verdict: 'applied' });
      const later = await scene.bus.roll(OLD);
      thaw();
      if (!isDone) await until(() => scene.lost.includes('one'));
      expect(later.verdict).toBe('applied');
      expect(journal()).toMatchObject({ owner: 'two', sound: true, work: undefined, inForce: scene.bus.store(OLD) });
      expect(scene.values).toEqual(BEFORE);
    },
  );
});

it.each(Array.from({ length: CALLS }, (_, at) => at))(
  'a copy that is paused at call %i of a lease, and continues just before its end, has not failed',
  async (at) => {
    await scene.first('one');
    await scene.bus.roll(OLD);
    const { calls, thaw } = freeze('one', at);
    const lease = scene.bus.grant(NEW, { applyMs: 60_000 });
    await until(() => calls() > at || scene.bus.reports.some((report) => report.lease === lease));
    scene.aheadMs = 55_000;
    thaw();
    const { verdict } = await scene.bus.reported((report) => report.lease === lease);
    expect(['applied', 'unreachable']).toContain(verdict);
    await until(() => journal().sound && journal().work === undefined);
    expect(scene.values).toEqual(verdict === 'applied' ? AFTER : BEFORE);
  },
);

describe('the bucket of journals', () => {
  it('may be away after a lease has begun: the lease is finished, and recorded when the bucket is back', async () => {
    await scene.first('one');
    await scene.bus.roll(OLD);
    const write = scene.device.values.set.bind(scene.device.values);
    scene.device.values.set = (key, value) => {
      scene.journals.isDown = true;
      return write(key, value);
    };
    const lease = scene.bus.grant(NEW);
    await until(() => JSON.stringify(scene.values) === JSON.stringify(AFTER));
    expect(journal().work).toMatchObject({ phase: 'forward' });
    scene.journals.isDown = false;
    scene.device.values.set = write;
    expect((await scene.bus.reported((report) => report.lease === lease)).verdict).toBe('applied');
    expect(journal()).toMatchObject({ work: undefined, inForce: scene.bus.store(NEW) });
  });

  it('may be away past the deadline: then a rollback waits until it is known who has the target', async () => {
    await scene.first('one');
    await scene.bus.roll(OLD);
    const write = scene.device.values.set.bind(scene.device.values);
    scene.device.values.set = (key, value) => {
      scene.journals.isDown = true;
      scene.aheadMs = 100_000;
      return write(key, value);
    };
    const lease = scene.bus.grant(NEW, { applyMs: 60_000 });
    await until(() => scene.journals.isDown);
    scene.device.values.set = write;
    const halfway = scene.values;
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(scene.values).toEqual(halfway);
    scene.journals.isDown = false;
    expect((await scene.bus.reported((report) => report.lease === lease)).verdict).toBe('unreachable');
    await until(() => journal().sound);
    expect([scene.values, journal().inForce]).toEqual([BEFORE, scene.bus.store(OLD)]);
  });

  it('may be away before: then nothing begins', async () => {
    await scene.first('one');
    await scene.bus.roll(OLD);
    scene.journals.isDown = true;
    scene.bus.grant(NEW);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(scene.values).toEqual(BEFORE);
    scene.journals.isDown = false;
    await until(() => JSON.stringify(scene.values) === JSON.stringify(AFTER));
  });

  it('may lose the answers to writes: they count', async () => {
    await scene.first('one');
    scene.journals.losesAnswers = 3;
    expect((await scene.bus.roll(OLD)).verdict).toBe('applied');
    expect([scene.lost, journal().inForce]).toEqual([[], scene.bus.store(OLD)]);
  });

  it('with a journal that cannot be used, says so and what to do', async () => {
    scene.journals.stored.set('f-1', { text: 'me\nnonsense', revision: 4 });
    await expect(scene.copy('one')).rejects.toThrow(/journals cannot be used: not a journal.*Delete the key/);
  });
});
