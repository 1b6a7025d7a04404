import {
  accepted,
  changed,
  committed,
  ended,
  factOf,
  heard,
  joined,
  reason,
  renderedChange,
  renderedNode,
  reviewedNode,
  silent,
  validated,
} from '#libs/testing';
import { grants, leading, MINUTE, deferred, Scheduler, types } from './scheduler.fixture.js';

const fleetOf = (...names: readonly string[]) => new Scheduler().fleet(names);
const relabelled = (node: string, outdatedIn: readonly string[]) =>
  [
    changed(node, { zone: 'b' }),
    renderedNode(node, 'old', { cause: 'relabel', outdatedIn }),
    reviewedNode(node, 'old'),
  ] as const;

describe('a node that has moved from one rollout to another', () => {
  /** n1 has left c1 because of a relabel, and is a target of c2 since. */
  const between = () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.given(...relabelled('n1', ['c1'])).when();
    s.given(accepted('c2'), renderedChange('c2', leading(['n1'], 'old', 'c2-new')), validated('c2')).when();
    expect(s.status('n1').change).toBe('c2');
    return s;
  };

  it('is not affected by the commit of the first', () => {
    const s = between();
    s.applies('n0');
    expect(s.rollout('c1').phase).toBe('complete');
    s.given(committed('c1')).when();
    expect(s.status('n1')).toMatchObject({ change: 'c2', desired: 'old' });
    s.applies('n1');
    expect(s.rollout('c2').phase).toBe('complete');
  });

  it('is not affected when the first is superseded or reverted', () => {
    const superseded = between();
    superseded.given(factOf('rollout.superseded', { change: 'c1', by: 'c3' }));
    expect(superseded.status('n1').change).toBe('c2');
    const reverted = between();
    reverted.given(factOf('rollout.reverted', { change: 'c1' }));
    expect(reverted.status('n1').change).toBe('c2');
  });
});

describe('a commit', () => {
  it('gives no config to a target that has never joined, which is rendered when it joins', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0', 'ghost']);
    s.applies('n0');
    s.given(committed('c1')).when();
    s.given(joined('ghost'));
    expect(s.status('ghost').desired).toBe('');
    expect(grants(s.nodeReports('ghost', 'empty'))).toEqual([]);
  });

  it('keeps a node deferred, by this rollout or an earlier one', () => {
    const s = fleetOf('n0', 'n1', 'n2');
    s.given(
      factOf('node.deferred', { node: 'n2', change: 'c0', reason: 'of long ago' }),
      silent('n1'),
      factOf('node.skipped', { node: 'n1', by: 'me' }),
      silent('n2'),
      factOf('node.skipped', { node: 'n2', by: 'me' }),
    );
    s.given(accepted('c1'), renderedChange('c1', leading(['n0', 'n1', 'n2'], 'old', 'c1-new')), validated('c1')).when();
    s.applies('n0');
    s.given(committed('c1')).when();
    expect(['n0', 'n1', 'n2'].map((node) => s.status(node).deferred)).toEqual(['', 'skipped by me', 'skipped by me']);
  });

  it('keeps a node deferred that never reported its config', () => {
    const s = fleetOf('n0').given(joined('n1'), renderedNode('n1', 'c1-new'), reviewedNode('n1', 'c1-new'));
    s.rolls('c1', ['n0', 'n1']);
    s.applies('n0');
    s.given(committed('c1')).when();
    expect(s.status('n1')).toMatchObject({
      deferred: 'it has never reported its config',
      desired: 'c1-new',
      change: '',
    });
    expect(grants(s.nodeReports('n1', 'empty'))).toEqual(['n1 corrective c1-new']);
  });

  it('without policies keeps the plans that were made', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0']);
    s.applies('n0');
    s.reviewed('c2', ['n1']);
    const plans = () => s.decide().needs.map(({ key }) => key);
    const before = plans();
    expect(before).toHaveLength(1);
    s.given(committed('c1'));
    expect(plans()).toEqual(before);
  });

  it('does not give an incompatible node its config, even after a relabel of another node', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1'], { incompatible: ['n1'] });
    s.given(changed('n0', { zone: 'b' })).when();
    s.applies('n0');
    s.given(committed('c1')).when();
    expect([s.status('n0').desired, s.status('n1').desired]).toEqual(['c1-new', 'old']);
  });
});

describe('a node whose own config is not rendered yet', () => {
  it('is a normal target, and gets no separate config after the rollback', () => {
    const s = new Scheduler().given(joined('n0'), joined('n1'));
    s.nodeReports('n0', 'mine');
    s.nodeReports('n1', 'mine');
    s.rolls('c1', ['n0', 'n1'], { from: 'mine' });
    s.applies('n0');
    expect(grants(s.leaseEnds('n1', 'failed'))).toEqual(['n0 rollback mine']);
    s.applies('n0');
    expect(s.rollout('c1').phase).toBe('reverted');
    expect(grants(s.given(ended('c1', 'reverted')).when())).toEqual([]);
    expect(s.why('n0').because).toBe('not-rendered');
  });
});

describe("a node's deferral", () => {
  it('by a rollout stays when it reports the config that it had', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1'], { incompatible: ['n1'] });
    s.nodeReports('n1', 'old');
    expect(s.status('n1').deferred).toBe('it is incompatible with this change, and with the committed config too');
  });

  it('ends once its desired config is incompatible', () => {
    const s = fleetOf('n0').given(
      factOf('node.deferred', { node: 'n0', change: 'c0', reason: 'x' }),
      renderedNode('n0', 'y'),
      reviewedNode('n0', 'y', [reason('conflict')]),
    );
    expect(s.status('n0')).toMatchObject({ deferred: '', desired: '', incompatible: true });
  });
});

describe('drift', () => {
  it('is shown until the node reports `applied` for its config', () => {
    const s = fleetOf('n0');
    const drifted = (kind: 'drifted' | 'announced' | 'applied', what: readonly string[]) => (
      s.when(s.message('n0', 'old', { kind, differences: what })),
      s.status('n0').drifted
    );
    expect(drifted('announced', ['/x'])).toEqual([]);
    expect(drifted('drifted', ['/a'])).toEqual(['/a']);
    expect(drifted('announced', [])).toEqual(['/a']);
    expect(drifted('drifted', ['/b'])).toEqual(['/b']);
    expect(drifted('applied', [])).toEqual([]);
  });
});

describe('a rollout', () => {
  it('lists its nodes by name, in whatever order they were rendered', () => {
    const s = fleetOf('n0', 'n1', 'n2').given(
      accepted('c1'),
      renderedChange('c1', leading(['n2', 'n0', 'n1'], 'old', 'x')),
      validated('c1'),
    );
    s.when();
    s.asks({ op: 'rollout.get', change: 'c1', cursor: '', limit: 2 });
    expect(s.answers).toMatchObject([{ body: { nodes: [{ node: 'n0' }, { node: 'n1' }], next: 'n1' } }]);
  });

  it('without maxFailures tolerates no failure', () => {
    const s = fleetOf('n0').given(
      factOf('config.accepted', { change: 'c1' }),
      renderedChange('c1', leading(['n0'], 'old', 'x')),
      validated('c1'),
    );
    expect(s.when()[0]).toMatchObject({ type: 'rollout.started', maxFailures: 0 });
    expect(s.rollout('c1').maxFailures).toBe(0);
  });

  it('that starts while it is paused does not wait for a target', () => {
    const s = fleetOf('n0').given(accepted('c1'));
    s.pauses('c1');
    s.given(renderedChange('c1', leading(['n0'], 'old', 'x')), validated('c1')).when();
    expect(s.view('rollouts', 'c1')).toMatchObject({ phase: 'rolling', paused: true, stalledBy: [] });
  });

  it.each(['rollout.complete', 'rollout.reverting', 'rollout.reverted'] as const)(
    'that was stalled no longer is after its %s',
    (type) => {
      const s = fleetOf('n0', 'n1').given(silent('n1'));
      s.rolls('c1', ['n0']);
      expect(s.view('rollouts', 'c1').stalledBy).toEqual(['n1']);
      s.given(factOf(type, { change: 'c1' }));
      expect(s.view('rollouts', 'c1').stalledBy).toEqual([]);
    },
  );

  it('that is superseded has ended, and refuses to be steered', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    s.rolls('c2', ['n0'], { replaces: ['c1'] });
    s.pauses('c1');
    expect(s.answers).toEqual([{ ok: false, code: 'conflict', message: 'c1 has ended (superseded)' }]);
  });

  it('whose change ends in another way deletes its targets, and keeps its result', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1'], { incompatible: ['n1'] });
    s.given(ended('c1', 'gone'));
    expect([...s.state.targets.keys()]).toEqual([]);
    expect(s.view('rollouts', 'c1')).toMatchObject({
      nodes: 2,
      deferred: 1,
      pools: { default: { nodes: 2, active: 0 } },
    });
  });

  it('that is complete still shows its nodes after its change has ended, because they have its config', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    s.applies('n0');
    s.given(ended('c1', 'gone'));
    expect(s.state.rollouts.get('c1')?.frozen).toBeUndefined();
    expect(s.view('rollouts', 'c1').applied).toBe(1);
  });

  it('touches only the views of pools whose budget it may lower', () => {
    const s = fleetOf('n0').reviewed('c1', ['n0'], {
      apply: [{ kind: 'RolloutPolicy', name: 'calm', labels: {}, spec: { nodeSelector: {}, maxFailures: 1 } }],
    });
    s.core.takeTouched(s.state);
    s.given(factOf('rollout.started', { change: 'c1' }));
    expect([...s.core.takeTouched(s.state)].filter((key) => key.startsWith('pools/'))).toEqual(['pools/default']);
  });
});

describe('a node that is alive again', () => {
  it('gets what it lacks after the end, and later tries come later', () => {
    const s = fleetOf('n0', 'n1').given(silent('n1'), factOf('node.skipped', { node: 'n1', by: 'me' }));
    s.rolls('c1', ['n0', 'n1']);
    s.applies('n0');
    s.given(committed('c1')).when();
    expect(grants(s.given(heard('n1')).when())).toEqual(['n1 corrective c1-new']);
    expect(deferred(s.leaseEnds('n1', 'failed'))).toEqual(['n1: corrective lease ended as failed: it is failed']);
    expect(types(s.after(MINUTE))).toEqual(['node.lease.granted']);
  });
});
