import type { Fragment } from '#libs/contracts';
import {
  accepted,
  changed,
  committed,
  fragment,
  pool,
  renderedChange,
  renderedNode,
  reviewedNode,
  validated,
} from '#libs/testing';
import { schedulerCore, type Plan } from './index.js';
import { DRAIN, NONE, grants, leading, deferred, Scheduler } from './scheduler.fixture.js';

const fleetOf = (...names: readonly string[]) => new Scheduler().fleet(names);
const commits = (s: Scheduler, change: string, generation: number, ...apply: readonly Fragment[]) => {
  s.rolls(change, [], { apply });
  s.given(committed(change, generation)).when();
};
const policy = (name: string, matchLabels: object) =>
  fragment('DisruptionPolicy', name, { nodeSelector: { matchLabels } } as never);
const policyFor = (name: string, role: string, spec: object) =>
  fragment('RolloutPolicy', name, { nodeSelector: role === '' ? {} : { matchLabels: { role } }, ...spec } as never);

describe('the plan of a lease', () => {
  it('is requested with the node, both configs, and the policies that apply', () => {
    const s = new Scheduler().fleet(['n0'], { role: 'web' });
    commits(s, 'c1', 1, fragment('DisruptionPolicy', 'b'), fragment('DisruptionPolicy', 'gone'), pool('edge', 1));
    const own = { ...fragment('DisruptionPolicy', 'a'), labels: { own: 'yes' } };
    s.given(
      accepted('c2', { apply: [own], delete: [{ kind: 'DisruptionPolicy', name: 'gone' }] }),
      renderedChange('c2', leading(['n0'], 'old', 'new')),
      validated('c2'),
    );
    const [need] = s.plansNeeded();
    expect(need).toMatchObject({ node: 'n0', labels: { role: 'web' }, from: 'old', to: 'new' });
    expect(need?.policies.map(({ kind, name }) => `${kind}/${name}`)).toEqual([
      'DisruptionPolicy/a',
      'DisruptionPolicy/b',
    ]);
  });

  it('outside a rollout uses the committed policies only', () => {
    const s = fleetOf('n0', 'n1');
    commits(s, 'c1', 1, fragment('DisruptionPolicy', 'b'));
    s.rolls('c2', ['n1'], { apply: [fragment('DisruptionPolicy', 'a')] });
    s.applies('n1');
    s.given(renderedNode('n0', 'x'), reviewedNode('n0', 'x'));
    expect(s.plansNeeded().map((need) => need.policies.map(({ name }) => name))).toEqual([['b']]);
  });

  it('for another config, change or policy, or for labels that other policies select, is not used', () => {
    const s = fleetOf('n0').reviewed('c1', ['n0']);
    const plans = new Map(s.plansNeeded().map(({ key }) => [key, { ok: true, actions: DRAIN } as const]));
    expect(grants(s.decide([], plans).facts)).toEqual(['n0 forward c1-new']);
    const differs: readonly ((other: Scheduler) => unknown)[] = [
      (other) => other.reviewed('c1', ['n0'], { to: 'other' }),
      (other) => other.reviewed('c2', ['n0'], { to: 'c1-new' }),
      (other) => (commits(other, 'c8', 2, fragment('DisruptionPolicy', 'p')), other.reviewed('c1', ['n0'])),
      (other) => (
        other.given(renderedNode('n0', 'strange'), reviewedNode('n0', 'strange')).nodeReports('n0', 'strange'),
        other.reviewed('c1', ['n0'], { from: 'strange' })
      ),
    ];
    for (const act of differs) {
      const other = fleetOf('n0');
      act(other);
      expect([grants(other.decide([], plans).facts), other.plansNeeded(plans).length]).toEqual([[], 1]);
    }
  });

  it('is shared by nodes with the same configs and policies, whatever their other labels', () => {
    const s = new Scheduler().fleet(['n0', 'n1'], { role: 'a' }).fleet(['n2', 'n3'], { role: 'b' });
    commits(s, 'c1', 1, pool('default', 4), policy('all', {}), policy('a', { role: 'a' }), policy('b', { role: 'b' }));
    s.given(changed('n0', { role: 'a', rack: '1' })).reviewed('c2', ['n0', 'n1', 'n2', 'n3']);
    const needs = s.plansNeeded();
    expect(needs.map((need) => [need.node, ...need.policies.map(({ name }) => name)])).toEqual([
      ['n0', 'a', 'all'],
      ['n2', 'all', 'b'],
    ]);
    const plans = new Map(needs.map(({ key }) => [key, { ok: true, actions: DRAIN } as const]));
    expect(grants(s.decide([], plans).facts)).toEqual(['n0', 'n1', 'n2', 'n3'].map((node) => `${node} forward c2-new`));
  });

  it('without a config that one node lacks is used for that node only, and not cached', () => {
    const s = fleetOf('n0', 'n1', 'n2');
    commits(s, 'c1', 1, pool('default', 3));
    const other = fleetOf('n0', 'n1', 'n2');
    commits(other, 'c1', 1, pool('default', 3));
    const [first] = other.reviewed('c2', ['n0', 'n1', 'n2']).plansNeeded();
    const made = new Map([[first?.key ?? '', { ok: true, actions: DRAIN, only: 'n0' } as const]]);
    expect([
      grants(other.decide([], made).facts),
      other.plansNeeded(made).map(({ node, from, to }) => `${node} ${from} ${to}`),
    ]).toEqual([['n0 forward c2-new'], ['n1 old c2-new', 'n2 old c2-new']]);
    s.lost.add('n0 c2-new');
    const facts = s.rolls('c2', ['n0', 'n1', 'n2']);
    expect(deferred(facts)).toEqual(['n0: c2-new is lost']);
    expect(grants(facts)).toEqual(['n1 forward c2-new', 'n2 forward c2-new']);
    expect(
      [
        { ok: true, actions: DRAIN },
        { ok: true, actions: DRAIN, only: 'n0' },
        { ok: false, reason: '', only: 'n0' },
      ].map((plan) => schedulerCore.keeps?.(plan as Plan)),
    ).toEqual([true, false, false]);
  });

  it('also includes drift, for any kind of lease, and the lease shows that drift until it is settled', () => {
    const overwriting = () => {
      const s = fleetOf('n0');
      commits(s, 'c8', 1, pool('all', 1, '', { drift: 'overwrite', nodeSelector: {} }));
      return s;
    };
    const s = overwriting().reviewed('c1', ['n0']);
    const plans = new Map(s.plansNeeded().map(({ key }) => [key, { ok: true, actions: NONE } as const]));
    const drifted = overwriting();
    drifted.when(drifted.message('n0', 'old', { kind: 'drifted', differences: ['/a: missing'] }));
    drifted.reviewed('c1', ['n0']);
    expect(drifted.plansNeeded(plans).map(({ drift }) => drift)).toEqual([['/a: missing']]);
    drifted.when();
    expect(drifted.lease('n0').drift).toEqual({ differences: ['/a: missing'], overwrite: true });
    drifted.applies('n0');
    expect([drifted.lease('n0').drift, drifted.status('n0').drifted]).toEqual([undefined, []]);
    s.when();
    expect(s.lease('n0').drift).toEqual({ differences: [], overwrite: true });
  });

  it('that is not ready keeps the unit for its node, and no other plan is requested', () => {
    const s = fleetOf('n0', 'n1').reviewed('c1', ['n0', 'n1']);
    expect(s.plansNeeded().map(({ node }) => node)).toEqual(['n0']);
  });
});

describe('maxFailures of a rollout', () => {
  const tolerated = (s: Scheduler, nodes: readonly string[], more: object = {}) => (
    s.rolls('c7', nodes, more),
    s.rollout('c7').maxFailures
  );
  const fleet = (...policies: readonly Fragment[]) => {
    const s = new Scheduler().fleet(['a0'], { role: 'a' }).fleet(['b0'], { role: 'b' });
    commits(s, 'c1', 1, ...policies);
    return s;
  };

  it('is that of the strictest policy that selects one of its nodes, and none by default', () => {
    const policies = [
      policyFor('a', 'a', { maxFailures: 3 }),
      policyFor('b', 'b', { maxFailures: 2 }),
      policyFor('c', 'c', { maxFailures: 1 }),
    ];
    expect(tolerated(fleet(...policies), ['a0'])).toBe(3);
    expect(tolerated(fleet(...policies), ['a0', 'b0'])).toBe(2);
    expect(tolerated(fleet(policies[2]!), ['a0', 'b0'])).toBe(0);
  });

  it('is that of the change itself, even if it is 0', () => {
    expect(tolerated(fleet(policyFor('a', '', { maxFailures: 3 })), ['a0'], { maxFailures: 0 })).toBe(0);
    expect(tolerated(fleet(policyFor('a', '', { maxFailures: 3 })), ['a0'], { maxFailures: 7 })).toBe(7);
  });

  it('is that of the policies as its change modifies them', () => {
    const policies = [policyFor('a', '', { maxFailures: 1 }), policyFor('b', '', { maxFailures: 4 })];
    expect(tolerated(fleet(...policies), ['a0'], { delete: [{ kind: 'RolloutPolicy', name: 'a' }] })).toBe(4);
    expect(tolerated(fleet(...policies), ['a0'], { apply: [policyFor('a', '', { maxFailures: 2 })] })).toBe(2);
  });
});
