import type { RunningTarget, Target } from './run-target.js';
import { TargetSet } from './target-set.js';

const target = (labels: Readonly<Record<string, string>>): Target =>
  ({ node: 'f-1', labels, settings: '' }) as unknown as Target;
const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

/** A set of one target, and what that target was heard. Its claim ends when `claimed` is called. */
function setOfOne(): { readonly set: TargetSet; readonly heard: unknown[]; readonly claimed: () => Promise<void> } {
  const heard: unknown[] = [];
  let end: () => void = () => undefined;
  const claim = new Promise<void>((resolve) => (end = resolve));
  const run = async ({ node, labels }: Target): Promise<RunningTarget> => {
    await claim;
    heard.push(labels);
    return {
      node,
      looked: Promise.resolve(),
      relabel: (next) => void heard.push(next),
      setUnavailable: (reason) => void heard.push(reason),
      stop: () => Promise.resolve(),
    };
  };
  const set = new TargetSet({ shards: 1, run, log: quiet });
  set.lead(0, true);
  return { set, heard, claimed: () => (end(), new Promise((resolve) => setImmediate(resolve))) };
}

it('tells a target its labels when they differ, and not at each change of the inventory', async () => {
  const { set, heard, claimed } = setOfOne();
  set.replace([target({ zone: 'a' })]);
  await claimed();
  set.replace([target({ zone: 'a' })]);
  set.replace([target({ zone: 'b' })]);
  set.replace([target({ zone: 'b' })]);
  expect(heard).toEqual([{ zone: 'a' }, { zone: 'b' }]);
});

it('tells a target the labels that it got while it was being claimed', async () => {
  const { set, heard, claimed } = setOfOne();
  set.replace([target({ zone: 'a' })]);
  set.replace([target({ zone: 'b' })]);
  set.replace([target({ zone: 'c' })]);
  await claimed();
  expect(heard).toEqual([{ zone: 'a' }, { zone: 'c' }]);
});

it('claims a target that another copy took over again, but not at full speed', async () => {
  jest.useFakeTimers();
  try {
    let claims = 0;
    const run = (_target: Target, onLost: () => void): Promise<RunningTarget> => {
      claims += 1;
      if (claims < 4) setTimeout(onLost, 1);
      return Promise.resolve({
        node: 'f-1',
        looked: Promise.resolve(),
        relabel: () => undefined,
        setUnavailable: () => undefined,
        stop: () => Promise.resolve(),
      });
    };
    const set = new TargetSet({ shards: 1, run, log: quiet });
    set.lead(0, true);
    set.replace([target({})]);
    await jest.advanceTimersByTimeAsync(6_000);
    expect(claims).toBe(1);
    await jest.advanceTimersByTimeAsync(60_000);
    expect(claims).toBe(4);
    await set.stop();
  } finally {
    jest.useRealTimers();
  }
});

it('says that a target is contested, until nobody has taken it over for a while', async () => {
  jest.useFakeTimers();
  try {
    const contests: unknown[] = [];
    let claims = 0;
    const run = (_target: Target, onLost: () => void): Promise<RunningTarget> => {
      claims += 1;
      if (claims < 5) setTimeout(onLost, 1);
      return Promise.resolve({
        node: 'f-1',
        looked: Promise.resolve(),
        relabel: () => undefined,
        setUnavailable: () => undefined,
        stop: () => Promise.resolve(),
      });
    };
    const onContest = (node: string, isContested: boolean): void => void contests.push([node, isContested]);
    const set = new TargetSet({ shards: 1, run, log: quiet, onContest });
    set.lead(0, true);
    set.replace([target({})]);
    await jest.advanceTimersByTimeAsync(10_000);
    expect([claims, contests]).toEqual([2, []]);
    await jest.advanceTimersByTimeAsync(20_000);
    expect([claims, contests]).toEqual([5, [['f-1', true]]]);
    await jest.advanceTimersByTimeAsync(60_000);
    expect(contests).toEqual([
      ['f-1', true],
      ['f-1', false],
    ]);
    await set.stop();
  } finally {
    jest.useRealTimers();
  }
});

it('tells a target whether it can be used, until it leaves', async () => {
  const { set, heard, claimed } = setOfOne();
  set.replace([target({})]);
  await claimed();
  set.replace([{ ...target({}), unavailable: 'not ready' }]);
  set.replace([target({})]);
  set.replace([]);
  await set.settled('f-1');
  set.announce('f-1');
  expect(heard).toEqual([{}, 'not ready', undefined]);
  expect(set.leads('f-1')).toBe(true);
});

it('starts a thousand targets a few at a time, and does not wait for those that do not answer', async () => {
  jest.useFakeTimers();
  try {
    const answers: (() => void)[] = [];
    const run = ({ node }: Target): Promise<RunningTarget> =>
      Promise.resolve({
        node,
        looked: new Promise<void>((resolve) => answers.push(resolve)),
        relabel: () => undefined,
        setUnavailable: () => undefined,
        stop: () => Promise.resolve(),
      });
    const set = new TargetSet({ shards: 1, run, log: quiet });
    set.lead(0, true);
    set.replace(Array.from({ length: 1_000 }, (_, i) => ({ ...target({}), node: `f-${i}` })));
    await jest.advanceTimersByTimeAsync(10);
    expect(answers.length).toBe(32);
    for (const answer of answers.slice(0, 10)) answer();
    await jest.advanceTimersByTimeAsync(10);
    expect(answers.length).toBe(42);
    await jest.advanceTimersByTimeAsync(20_000);
    expect(answers.length).toBe(1_000);
    await set.stop();
  } finally {
    jest.useRealTimers();
  }
});

it('does not start a target that is not wanted any more when its turn comes', async () => {
  let runs = 0;
  const run = ({ node }: Target): Promise<RunningTarget> => {
    runs += 1;
    const looked = Promise.resolve();
    return Promise.resolve({
      node,
      looked,
      relabel: () => undefined,
      setUnavailable: () => undefined,
      stop: () => looked,
    });
  };
  const set = new TargetSet({ shards: 1, run, log: quiet });
  set.lead(0, true);
  set.replace(Array.from({ length: 100 }, (_, i) => ({ ...target({}), node: `f-${i}` })));
  set.replace([]);
  await Promise.all(Array.from({ length: 100 }, (_, i) => set.settled(`f-${i}`)));
  expect(runs).toBeLessThanOrEqual(32);
});
