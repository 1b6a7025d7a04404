import { accepted, committed, left, pool, renderedChange, validated } from '#libs/testing';
import type { Target } from '#libs/contracts';
import { Scheduler, types } from './scheduler.fixture.js';

const target = (to: string, recipe: string): Target => ({ from: 'old', to, recipe });

/** c1 brings `same` with the recipe `r` to a0. c2 brings a config to b0, which has a lease, and to b1, which waits. */
function sideBySide(mine: Target, first: Target, second: Target): Scheduler {
  const s = new Scheduler().given(
    accepted('c9', { apply: [pool('a', 1), pool('b', 1)] }),
    renderedChange('c9', {}),
    validated('c9'),
  );
  s.when();
  s.given(committed('c9')).fleet(['a0'], { role: 'a' }).fleet(['b0', 'b1'], { role: 'b' });
  s.given(accepted('c1'), renderedChange('c1', { a0: mine }), validated('c1')).when();
  s.given(accepted('c2'), renderedChange('c2', { b0: first, b1: second }), validated('c2')).when();
  return s;
}
const failures = (facts: ReturnType<Scheduler['when']>): readonly string[] =>
  facts.flatMap((fact) => (fact.type === 'rollout.failed' ? [fact.change] : []));

describe('another rollout, when a config is reported as invalid', () => {
  const bad = target('same', 'r');
  const other = target('fine', 'q');
  test.each<[string, Target, Target, Target, readonly string[]]>([
    ['continues, if it brings neither its hash nor its recipe', bad, other, other, ['c1']],
    ['fails, if it brings its hash by another recipe', bad, target('same', 'q'), other, ['c2', 'c1']],
    ['fails, if it brings another hash by its recipe', bad, target('fine', 'r'), other, ['c2', 'c1']],
    ['fails, if only a node that still waits would get it', bad, other, target('same', 'r'), ['c2', 'c1']],
    [
      'continues, if all that both have in common is that no recipe is known',
      target('same', ''),
      target('fine', ''),
      target('fine', ''),
      ['c1'],
    ],
  ])('%s', (_name, mine, first, second, failed) => {
    const s = sideBySide(mine, first, second);
    expect(failures(s.leaseEnds('a0', 'invalid'))).toEqual(failed);
    expect(s.rollout('c2').phase).toBe(failed.includes('c2') ? 'reverting' : 'rolling');
  });

  it('continues if the node that would get it has left', () => {
    const s = sideBySide(bad, other, target('same', 'r'));
    s.given(left('b1')).when();
    expect(failures(s.leaseEnds('a0', 'invalid'))).toEqual(['c1']);
  });

  it('continues if the node already has it', () => {
    const s = sideBySide(bad, target('same', 'r'), other);
    s.applies('b0');
    expect(failures(s.leaseEnds('a0', 'invalid'))).toEqual(['c1']);
  });

  it('fails once, and not again when another node reports the same', () => {
    const s = sideBySide(bad, target('same', 'r'), target('same', 'r'));
    expect(failures(s.leaseEnds('a0', 'invalid'))).toEqual(['c2', 'c1']);
    expect(failures(s.leaseEnds('b0', 'invalid'))).toEqual([]);
  });

  it('gives the reason, also in its rollback', () => {
    const s = sideBySide(bad, target('same', 'r'), other);
    const facts = s.leaseEnds('a0', 'invalid').filter((fact) => fact.type.startsWith('rollout.')) as readonly {
      readonly type: string;
      readonly change: string;
      readonly reason: string;
    }[];
    expect(facts.map(({ type, change, reason }) => `${type} ${change}: ${reason}`)).toEqual([
      'rollout.failed c2: a0 in c1 reported its config as invalid: it is invalid',
      'rollout.reverting c2: a0 in c1 reported its config as invalid: it is invalid',
      'rollout.failed c1: a0 is invalid: it is invalid',
      'rollout.reverting c1: a0 is invalid: it is invalid',
    ]);
  });
});

describe('the fact of a settled lease', () => {
  const settled = (s: Scheduler, facts: ReturnType<Scheduler['when']>) =>
    facts.find((fact) => fact.type === 'node.lease.settled');
  const rolling = (): Scheduler => {
    const s = new Scheduler().fleet(['n0']);
    s.rolls('c1', ['n0']);
    return s;
  };

  it('names the recipe only for an invalid config', () => {
    const [good, bad] = [rolling(), rolling()];
    expect(settled(good, good.applies('n0'))).toMatchObject({ because: 'applied', recipe: '' });
    expect(settled(bad, bad.leaseEnds('n0', 'invalid'))).toMatchObject({ because: 'invalid', recipe: 'r-c1-new' });
  });

  it('omits from the report what it contains itself, and a known boot id', () => {
    const [known, another] = [rolling(), rolling()];
    expect(settled(known, known.applies('n0'))).toMatchObject({ report: { hash: '', verdict: '', bootId: '' } });
    expect(settled(another, another.leaseEnds('n0', 'failed', { bootId: 'b9', hash: 'elsewhere' }))).toMatchObject({
      report: { hash: 'elsewhere', verdict: '', bootId: 'b9' },
    });
    expect(another.status('n0')).toMatchObject({ hash: 'elsewhere', verdict: 'failed' });
  });

  it('contains no report if the node did not answer, and then no result of a rollback', () => {
    const s = rolling();
    const facts = s.after(2 * 60_000 + 1);
    expect(types(facts)).toContain('node.unknown');
    expect(settled(s, facts)).toMatchObject({ because: 'unknown', restored: false });
    expect(settled(s, facts)).not.toHaveProperty('report');
  });

  it('treats a node that was skipped or has left as unchanged', () => {
    const [skipped, gone] = [rolling(), rolling()];
    expect(settled(skipped, skipped.skips('n0'))).toMatchObject({ because: 'skipped', restored: true });
    expect(settled(gone, gone.given(left('n0')).when())).toMatchObject({ because: 'left', restored: true });
  });
});
