import { newCopy, turn, type Core, type TurnEffect } from './index.js';

interface AskedNeed {
  readonly key: string;
}
type GatheredResult = { readonly ok: boolean };

/** Asks for whatever its input names, and decides nothing. */
const core = (keeps?: (found: GatheredResult) => boolean): Core<null, AskedNeed, AskedNeed, GatheredResult> => ({
  name: 'scheduler',
  version: 1,
  reads: [],
  wantsTargets: false,
  ...(keeps === undefined ? {} : { keeps }),
  gather: function* (needs) {
    yield { do: 'read-configs', names: needs.map(({ key }) => ({ node: key, hash: '' })) };
    return new Map(needs.map(({ key }) => [key, { ok: !key.startsWith('bad') }]));
  },
  initial: () => null,
  evolve: () => undefined,
  decide: (_state, inputs, gathered) => {
    const needs = inputs.filter(({ key }) => !gathered.has(key));
    return { facts: [], answers: new Map(), waiting: new Set(needs), needs, more: false, wakeAtMs: undefined };
  },
  takeTouched: () => new Set(),
  viewKeys: () => [],
  view: () => undefined,
  dump: () => null,
  load: () => null,
});

/** One turn for each list of keys; what was gathered in each. */
function gatheredIn(
  kept: Core<null, AskedNeed, AskedNeed, GatheredResult>,
  turns: readonly (readonly string[])[],
): readonly (readonly string[])[] {
  const copy = newCopy(kept);
  return turns.map((keys) => {
    copy.inputs.push(...keys.map((key) => ({ key })));
    const gathered: string[] = [];
    const steps = turn(copy);
    const answer = (effect: TurnEffect<AskedNeed>) => {
      if (effect.do === 'read' || effect.do === 'catch-up') return { entries: [], upTo: 0 };
      if (effect.do === 'now') return { monotonicMs: 0, leadingSinceMs: 0, wallMs: 0 };
      if (effect.do === 'read-configs') gathered.push(...effect.names.map(({ node }) => node));
      return undefined;
    };
    for (let next = steps.next(); next.done !== true;) next = steps.next(answer(next.value));
    return gathered;
  });
}

describe('gathered results', () => {
  it('are used by one decision only', () => {
    expect(gatheredIn(core(), [['a'], ['a', 'b']])).toEqual([['a'], ['a', 'b']]);
  });

  it('are used by later decisions if the core keeps them, and gathered again otherwise', () => {
    expect(
      gatheredIn(
        core(({ ok }) => ok),
        [['a', 'bad'], ['a', 'bad', 'c'], ['c']],
      ),
    ).toEqual([['a', 'bad'], ['bad', 'c'], []]);
  });

  it('are dropped before they grow large', () => {
    const many = Array.from({ length: 101 }, (_, i) => `k${i}`);
    expect(
      gatheredIn(
        core(() => true),
        [many.slice(0, 100), ['k0'], ['k100'], ['k0']],
      ),
    ).toEqual([many.slice(0, 100), [], ['k100'], ['k0']]);
  });
});

describe('a turn with many decisions', () => {
  /** Needs several decisions: each has one fact, or none and says that there is more to decide. */
  const busy = (rounds: number, facts: boolean): Core<{ left: number }, AskedNeed> => ({
    ...(core() as unknown as Core<{ left: number }, AskedNeed>),
    initial: () => ({ left: rounds }),
    decide: (state) => ({
      facts: facts && state.left > 0 ? [{ type: 'node.heard', node: `n${state.left}` }] : [],
      answers: new Map(),
      waiting: new Set(),
      needs: [],
      more: state.left > 1,
      wakeAtMs: undefined,
      memory: undefined,
    }),
    remember: (state) => {
      state.left -= 1;
    },
  });

  it.each([true, false])('pauses before each decision; with facts: %s', (facts) => {
    const effects: string[] = [];
    const steps = turn(newCopy(busy(5, facts)));
    for (let next = steps.next(); next.done !== true;) {
      effects.push(next.value.do);
      const tail = { entries: [], upTo: 0 };
      const answers: Readonly<Record<string, unknown>> = {
        read: tail,
        now: { monotonicMs: 0, leadingSinceMs: 0, wallMs: 0 },
        append: { outcome: 'appended', ...tail },
      };
      next = steps.next(answers[next.value.do]);
    }
    const decisions = effects.filter((effect) => effect === 'now').length;
    expect(decisions).toBeGreaterThanOrEqual(5);
    expect(effects.filter((effect, i) => effect === 'pause' && effects[i + 1] === 'read')).toHaveLength(decisions);
  });
});
