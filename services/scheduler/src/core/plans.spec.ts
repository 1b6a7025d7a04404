import type { Fragment } from '#libs/contracts';
import { accepted, committed, fragment, pool, renderedChange, renderedNode, reviewedNode, silent, validated } from '#libs/testing';
import { DRAIN, grants, leading, MINUTE, owed, Scheduler, settledAs, types } from './scheduler.fixture.js';

const fleetOf = (...names: readonly string[]) => new Scheduler().fleet(names);
const commits = (s: Scheduler, change: string, generation: number, ...apply: readonly Fragment[]) => {
  s.rolls(change, [], { apply });
  s.given(committed(change, generation)).when();
};
const policyFor = (name: string, role: string, spec: object) => fragment('RolloutPolicy', name, { nodeSelector: role === '' ? {} : { matchLabels: { role } }, ...spec } as never);

describe('the plan of a lease', () => {
  it('is asked for with what the node is, what it has, what it shall have, and the policies in force for it', () => {
    const s = new Scheduler().fleet(['n0'], { role: 'web' });
    commits(s, 'c1', 1, fragment('DisruptionPolicy', 'b'), fragment('DisruptionPolicy', 'gone'), pool('edge', 1));
    const own = { ...fragment('DisruptionPolicy', 'a'), labels: { own: 'yes' } };
    s.given(accepted('c2', { apply: [own], delete: [{ kind: 'DisruptionPolicy', name: 'gone' }] }), renderedChange('c2', leading(['n0'], 'old', 'new')), validated('c2'));
    const [need] = s.decide().needs;
    expect(need).toMatchObject({ node: 'n0', labels: { role: 'web' }, from: 'old', to: 'new' });
    expect(need?.policies.map(({ kind, name }) => `${kind}/${name}`)).toEqual(['DisruptionPolicy/a', 'DisruptionPolicy/b']);
  });

  it('outside a rollout is made under the committed policies alone', () => {
    const s = fleetOf('n0', 'n1');
    commits(s, 'c1', 1, fragment('DisruptionPolicy', 'b'));
    s.rolls('c2', ['n1'], { apply: [fragment('DisruptionPolicy', 'a')] });
    s.applies('n1');
    s.given(renderedNode('n0', 'x'), reviewedNode('n0', 'x'));
    expect(s.decide().needs.map((need) => need.policies.map(({ name }) => name))).toEqual([['b']]);
  });

  it('made for another config, change or policy is not taken', () => {
    const s = fleetOf('n0').reviewed('c1', ['n0']);
    const plans = new Map(s.decide().needs.map(({ key }) => [key, { ok: true, actions: DRAIN } as const]));
    expect(grants(s.decide([], plans).facts)).toEqual(['n0 forward c1-new']);
    const differs: readonly ((other: Scheduler) => unknown)[] = [
      (other) => other.reviewed('c1', ['n0'], { to: 'other' }),
      (other) => other.reviewed('c2', ['n0'], { to: 'c1-new' }),
      (other) => (commits(other, 'c8', 2, fragment('DisruptionPolicy', 'p')), other.reviewed('c1', ['n0'])),
      (other) => (other.given(renderedNode('n0', 'strange'), reviewedNode('n0', 'strange')).reports_('n0', 'strange'), other.reviewed('c1', ['n0'], { from: 'strange' })),
    ];
    for (const happens of differs) {
      const other = fleetOf('n0');
      happens(other);
      expect([grants(other.decide([], plans).facts), other.decide([], plans).needs.length]).toEqual([[], 1]);
    }
  });

  it('that is not there yet keeps the unit for its node: nobody else is asked about', () => {
    const s = fleetOf('n0', 'n1').reviewed('c1', ['n0', 'n1']);
    expect(s.decide().needs.map(({ node }) => node)).toEqual(['n0']);
  });
});

describe('the failures that a rollout tolerates', () => {
  const tolerated = (s: Scheduler, nodes: readonly string[], more: object = {}) => (s.rolls('c7', nodes, more), s.rollout('c7').maxFailures);
  const fleet = (...policies: readonly Fragment[]) => {
    const s = new Scheduler().fleet(['a0'], { role: 'a' }).fleet(['b0'], { role: 'b' });
    commits(s, 'c1', 1, ...policies);
    return s;
  };

  it('are those of the strictest policy that selects one of its nodes, and none where no policy does', () => {
    const policies = [policyFor('a', 'a', { maxFailures: 3 }), policyFor('b', 'b', { maxFailures: 2 }), policyFor('c', 'c', { maxFailures: 1 })];
    expect(tolerated(fleet(...policies), ['a0'])).toBe(3);
    expect(tolerated(fleet(...policies), ['a0', 'b0'])).toBe(2);
    expect(tolerated(fleet(policies[2]!), ['a0', 'b0'])).toBe(0);
  });

  it('are what the change itself says, be it none', () => {
    expect(tolerated(fleet(policyFor('a', '', { maxFailures: 3 })), ['a0'], { maxFailures: 0 })).toBe(0);
    expect(tolerated(fleet(policyFor('a', '', { maxFailures: 3 })), ['a0'], { maxFailures: 7 })).toBe(7);
  });

  it('are those of the policies as its change leaves them', () => {
    const policies = [policyFor('a', '', { maxFailures: 1 }), policyFor('b', '', { maxFailures: 4 })];
    expect(tolerated(fleet(...policies), ['a0'], { delete: [{ kind: 'RolloutPolicy', name: 'a' }] })).toBe(4);
    expect(tolerated(fleet(...policies), ['a0'], { apply: [policyFor('a', '', { maxFailures: 2 })] })).toBe(2);
  });
});

describe('time', () => {
  it('is asked to come again at the first of all deadlines: of leases, drains, releases and next tries', () => {
    const ready = fleetOf('n0');
    ready.rolls('c1', ['n0']);
    const granted = ready.nowMs;
    ready.nowMs += 1;
    expect(ready.decide().wakeAtMs).toBe(granted + 2 * MINUTE);
    const draining = fleetOf('n0');
    draining.actions = DRAIN;
    draining.rolls('c1', ['n0']);
    expect(draining.decide().wakeAtMs).toBe(draining.nowMs + 10 * MINUTE);
    const skipped = fleetOf('n0');
    skipped.rolls('c1', ['n0']);
    skipped.skips('n0');
    expect(skipped.decide().wakeAtMs).toBe(skipped.nowMs + 2 * MINUTE);
    const failed = fleetOf('n0');
    failed.reports_('n0', 'strange');
    failed.answers_('n0', 'failed');
    expect(failed.decide().wakeAtMs).toBe(failed.nowMs + MINUTE);
    expect(fleetOf('n0').decide().wakeAtMs).toBeUndefined();
  });

  it('brings those who have waited longest first, and of two that have waited as long the first by name', () => {
    const s = fleetOf('n0', 'n1', 'n2');
    for (const [node, wait] of [['n2', 1_000], ['n1', 0], ['n0', 1_000]] as const) {
      s.reports_(node, 'strange');
      s.answers_(node, 'failed');
      s.nowMs += wait;
    }
    s.nowMs += 2 * MINUTE;
    const order: string[] = [];
    for (let i = 0; i < 3; i++) {
      s.when();
      const [node] = s.atWork();
      order.push(node ?? '');
      s.applies(node ?? '');
    }
    expect(order).toEqual(['n2', 'n0', 'n1']);
  });

  it('brings no next try to a node that is silent, nor one that would take a unit which is not free', () => {
    const s = fleetOf('n0', 'n1');
    s.reports_('n0', 'strange');
    s.answers_('n0', 'failed');
    s.given(silent('n0'));
    expect(s.decide().wakeAtMs).toBeUndefined();
    expect(grants(s.after(MINUTE))).toEqual([]);
    const other = fleetOf('n0', 'n1');
    other.reports_('n0', 'strange');
    other.answers_('n0', 'failed');
    other.given(silent('n1'));
    expect(grants(other.after(MINUTE))).toEqual([]);
    // It is down itself, and takes none.
    expect(grants(other.reports_('n0', 'strange', { verdict: 'failed', restored: false }))).toEqual(['n0 corrective old']);
  });
});

describe('an answer', () => {
  it('that names a lease which still drains, or says nothing of it, settles nothing', () => {
    const s = fleetOf('n0');
    s.actions = DRAIN;
    s.rolls('c1', ['n0']);
    expect(types(s.answers_('n0', 'failed'))).toEqual(['node.reported']);
    const other = fleetOf('n0');
    other.rolls('c1', ['n0']);
    expect(types(other.reports_('n0', 'old', { lease: 'n0-l1', verdict: '' }))).toEqual(['node.reported']);
  });

  it('of a corrective lease that is refused is owed nothing and planned again at once', () => {
    const s = fleetOf('n0');
    s.reports_('n0', 'strange');
    const said = s.answers_('n0', 'refused', { hash: 'stranger' });
    expect([owed(said), grants(said)]).toEqual([[], ['n0 corrective old']]);
    expect(s.lease('n0').from).toBe('stranger');
  });

  it('without a verdict says that the node is on what it has; with a bad one only if that says so', () => {
    const s = fleetOf('n0');
    s.reports_('n0', 'old', { restored: false });
    expect(s.status('n0').restored).toBe(true);
    s.reports_('n0', 'old', { verdict: 'applied', restored: false });
    expect(s.status('n0').restored).toBe(true);
    s.reports_('n0', 'old', { verdict: 'refused', restored: false });
    expect([s.status('n0').restored, s.unavailable('default')]).toEqual([false, ['n0']]);
  });
});

describe('a corrective lease with a drain', () => {
  it('is not cancelled for want of a rollout', () => {
    const s = fleetOf('n0');
    s.actions = DRAIN;
    s.reports_('n0', 'strange');
    expect(s.after(MINUTE)).toEqual([]);
    expect(s.lease('n0')).toMatchObject({ phase: 'draining', change: '' });
    expect(settledAs(s.after(9 * MINUTE))).toEqual(['n0 failed']);
  });
});

describe('a way back with a drain', () => {
  it('is not cancelled while its rollout goes back', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.applies('n0');
    s.actions = DRAIN;
    expect(grants(s.answers_('n1', 'failed'))).toEqual(['n0 back old']);
    expect(s.after(MINUTE)).toEqual([]);
    expect(s.lease('n0').phase).toBe('draining');
  });
});

describe('an invalid', () => {
  it('turns no other rollout that has that config on the node already, or from which the node has left', () => {
    const s = new Scheduler().given(accepted('c9', { apply: [pool('a', 1), pool('b', 1), pool('c', 1)] }), renderedChange('c9', {}), validated('c9'));
    s.when();
    s.given(committed('c9')).fleet(['a0'], { role: 'a' }).fleet(['b0', 'b1'], { role: 'b' });
    s.rolls('c1', ['a0'], { to: 'same' });
    s.reviewed('c2', ['b0', 'b1'], { to: 'mine' }).given(renderedChange('c2', { ...leading(['b0'], 'old', 'same'), ...leading(['b1'], 'old', 'mine') }, { attempt: 2 }), validated('c2', 2)).when();
    s.applies('b0');
    s.answers_('a0', 'invalid');
    expect([s.rollout('c1').phase, s.rollout('c2').phase]).toEqual(['reverting', 'rolling']);
    s.applies('b1');
    expect(s.rollout('c2').phase).toBe('complete');
  });

  it('of a rollout that goes back already turns the others all the same', () => {
    const s = new Scheduler().given(accepted('c9', { apply: [pool('a', 2), pool('b', 1)] }), renderedChange('c9', {}), validated('c9'));
    s.when();
    s.given(committed('c9')).fleet(['a0', 'a1'], { role: 'a' }).fleet(['b0'], { role: 'b' });
    s.rolls('c1', ['a0', 'a1'], { to: 'same' });
    s.rolls('c2', ['b0'], { to: 'same' });
    s.answers_('a0', 'failed');
    expect(types(s.answers_('a1', 'invalid'))).toEqual(expect.arrayContaining(['rollout.failed', 'rollout.reverting']));
    expect(s.rollout('c2')).toMatchObject({ phase: 'reverting', reason: 'a1 in c1 found its config invalid: it is invalid' });
  });
});
