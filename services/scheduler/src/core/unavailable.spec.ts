import { REMOTE_APPLIER } from '#libs/contracts';
import {
  accepted,
  committed,
  heard,
  joined,
  pool,
  renderedChange,
  renderedNode,
  reviewedNode,
  silent,
  validated,
} from '#libs/testing';
import { deferred, grants, Scheduler } from './scheduler.fixture.js';

const NAMES = ['f0', 'f1'];
const AWAY = { unavailable: 'no answer in 5 s' };
const TEXT = 'unavailable: no answer in 5 s';

/** Two targets whose appliers run elsewhere, in a pool with one unit. */
function fleet(settings: object = {}): Scheduler {
  const s = new Scheduler();
  s.given(
    accepted('c0', { apply: [pool('edge', 1, 'edge', settings)] }),
    renderedChange('c0', {}),
    validated('c0'),
  ).when();
  s.given(committed('c0')).when();
  for (const node of NAMES) {
    s.given(
      joined(node, { role: 'edge' }, { capabilities: [REMOTE_APPLIER] }),
      renderedNode(node, 'old'),
      reviewedNode(node, 'old'),
    );
    s.nodeReports(node, 'old');
  }
  return s;
}

function commits(s: Scheduler, change: string): void {
  const rendered = NAMES.flatMap((node) => [renderedNode(node, `${change}-new`), reviewedNode(node, `${change}-new`)]);
  s.given(committed(change), ...rendered).when();
}

describe('a target that has said that it is unavailable', () => {
  it('gets no lease, and is deferred with the reason once it is silent', () => {
    const s = fleet();
    s.nodeReports('f0', 'old', AWAY);
    expect(grants(s.rolls('c1', NAMES))).toEqual(['f1 forward c1-new']);
    s.applies('f1');
    expect(s.rollout('c1').phase).toBe('rolling');
    const facts = s.given(silent('f0')).when();
    expect(deferred(facts)).toEqual([`f0: ${TEXT}`]);
    expect(s.rollout('c1')).toMatchObject({ phase: 'complete', failed: 0 });
  });

  it('gets its lease in the rollout if it does not answer only for a moment', () => {
    const s = fleet();
    expect(grants(s.rolls('c1', NAMES))).toEqual(['f0 forward c1-new']);
    s.nodeReports('f1', 'old', AWAY);
    expect(grants(s.applies('f0'))).toEqual([]);
    expect(grants(s.nodeReports('f1', 'old'))).toEqual(['f1 forward c1-new']);
  });

  it('gets no other lease either until it says that it can be used', () => {
    const s = fleet();
    s.nodeReports('f0', 'old', AWAY);
    s.given(renderedNode('f0', 'new'), reviewedNode('f0', 'new'));
    expect(grants(s.when())).toEqual([]);
    expect(grants(s.nodeReports('f0', 'old'))).toEqual(['f0 join new']);
  });

  it('says so in the report that ends its lease, and gets no other one', () => {
    const s = fleet();
    s.rolls('c1', NAMES);
    s.leaseEnds('f0', 'unreachable', { kind: 'unreachable', untouched: true, ...AWAY });
    s.applies('f1');
    commits(s, 'c1');
    expect(s.why('f0')).toMatchObject({
      because: 'unavailable',
      text: `${TEXT}; it gets no lease until its applier can use it`,
    });
    expect(grants(s.nodeReports('f0', 'old'))).toEqual(['f0 join c1-new']);
  });

  it('does not wait longer because its last lease failed', () => {
    const s = fleet();
    s.given(renderedNode('f1', 'new'), reviewedNode('f1', 'new')).when();
    s.leaseEnds('f1', 'unreachable', { kind: 'unreachable', untouched: true });
    expect(s.why('f1').because).toBe('backing-off');
    s.nodeReports('f1', 'old', AWAY);
    expect(grants(s.nodeReports('f1', 'old'))).toEqual(['f1 join new']);
  });

  it('stays so when an older report arrives late', () => {
    const s = fleet();
    const late = s.message('f0', 'old');
    s.nodeReports('f0', 'old', AWAY);
    expect(s.when(late)).toEqual([]);
    expect(grants(s.rolls('c1', ['f0']))).toEqual([]);
  });

  it('stays available when a report of before arrives late or twice', () => {
    const s = fleet();
    const away = s.message('f0', 'old', AWAY);
    s.nodeReports('f0', 'old');
    expect([s.when(away), s.when(away)]).toEqual([[], []]);
    expect(grants(s.rolls('c1', ['f0']))).toEqual(['f0 forward c1-new']);
  });

  it('stays so for a copy that starts from a snapshot', () => {
    const s = fleet();
    s.nodeReports('f0', 'old', AWAY);
    s.restart();
    expect(grants(s.rolls('c1', ['f0']))).toEqual([]);
  });

  it('that becomes silent shows why, also when its pool counts it', () => {
    const s = fleet({ silentNodes: 'count' });
    s.nodeReports('f0', 'old', AWAY);
    s.given(silent('f0')).when();
    expect(s.view('pools', 'edge')).toMatchObject({
      unavailable: [{ node: 'f0', because: TEXT, lease: '' }],
      targetsUnavailable: 1,
      unavailableTargets: [{ node: 'f0', reason: AWAY.unavailable }],
    });
    expect(s.why('f0')).toMatchObject({ because: 'unavailable' });
    expect(s.status('f0').unavailable).toBe(AWAY.unavailable);
  });

  it('gets no lease when it is only heard from, and none while it is silent', () => {
    const s = fleet();
    s.nodeReports('f0', 'old', AWAY);
    s.given(silent('f0')).when();
    s.rolls('c1', NAMES);
    s.applies('f1');
    commits(s, 'c1');
    expect(grants(s.given(heard('f0')).when())).toEqual([]);
    s.given(silent('f0')).when();
    expect(grants(s.nodeReports('f0', 'old'))).toEqual([]);
    expect(grants(s.given(heard('f0')).when())).toEqual(['f0 join c1-new']);
  });

  it('is shown as skipped if a person skipped it', () => {
    const s = fleet();
    s.rolls('c1', NAMES);
    s.nodeReports('f1', 'old', AWAY);
    s.skips('f1');
    expect(s.why('f1').because).toBe('skipped');
  });
});
