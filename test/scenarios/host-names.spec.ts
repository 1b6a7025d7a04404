import type { Config, Fragment } from '#libs/contracts';
import { NAMES_SOURCE, wantedNames } from '../../services/merger/src/core/index.js';
import { Installation } from './installation.fixture.js';

const CAPABILITIES = ['kind:CNFNAT', 'kind:CNFRoute', 'action:none'];
const HOST = 'db.example.com';
const fragment = (kind: string, name: string, spec: object): Fragment => ({
  kind,
  name,
  labels: {},
  spec: { nodeSelector: {}, ...spec } as Fragment['spec'],
});
const service = (name = 'web', more: object = {}): Fragment =>
  fragment('CNFService', name, { fullname: HOST, port: 5432, dport: 15_432, ...more });
const local = (name: string): Fragment =>
  fragment('CNFLocalService', name, { localservice: '10.0.0.9', remoteservice: HOST });
const resolved = (...addresses: readonly string[]): Fragment => ({
  kind: 'ResolvedName',
  name: HOST,
  labels: {},
  spec: { addresses } as unknown as Fragment['spec'],
});
const names = { source: NAMES_SOURCE };

function fleet(): Installation {
  const one = new Installation();
  one.starts(['n0', 'n1']);
  for (const node of ['n0', 'n1']) one.announces(node, { capabilities: CAPABILITIES });
  one.quiet();
  return one;
}
const viewOf = (one: Installation, change: string) => one.merger.read().view('changes', change);
const fragmentOf = (one: Installation, id: string) => one.merger.read().view('fragments', id);
const wanted = (one: Installation) => wantedNames(one.merger.read().state);
const objectsOf = (one: Installation, node: string): readonly string[] =>
  (JSON.parse(one.text(node, one.status(node).hash)) as Config).fragments.map(
    ({ kind, name, spec }) =>
      `${kind}/${name} ${String(spec['dst'] ?? spec['src_dip'] ?? '')} ${String(spec['dest_ip'] ?? '')}`,
  );

/** Both nodes have a service, and the name that it needs. */
function withService(): Installation {
  const one = fleet();
  one.rolls([service()]);
  one.rolls([resolved('192.0.2.7')], names);
  one.allApply();
  return one;
}

describe('a fragment with a host name', () => {
  it('waits for its addresses, which reach no node by themselves', () => {
    const one = fleet();
    const early = one.rolls([service()]);
    expect(viewOf(one, early)).toMatchObject({ phase: 'waiting', needs: [`ResolvedName/${HOST}`] });
    expect(wanted(one)).toEqual({ wanted: [{ name: HOST, published: undefined }], unused: [] });
    const found = one.rolls([resolved('192.0.2.7')], names);
    expect(viewOf(one, found)).toMatchObject({ phase: 'committed', nodes: 0, warnings: [] });
    one.allApply();
    expect(one.phase(early)).toBe('committed');
    for (const node of ['n0', 'n1']) expect(objectsOf(one, node)).toEqual(['CNFNAT/webnat  192.0.2.7']);
    expect(wanted(one).wanted).toEqual([{ name: HOST, published: { addresses: ['192.0.2.7'], change: found } }]);
  });

  it('is rejected at once with strict', () => {
    const one = fleet();
    const change = one.rolls([service()], { strategy: { strict: true } });
    expect(viewOf(one, change).reasons[0]).toMatchObject({
      fragment: 'CNFService/web',
      field: 'spec.fullname',
      code: 'missing-reference',
    });
  });

  it('gets new addresses in a rollout within the budget, and counts as changed', () => {
    const one = withService();
    const moved = one.rolls([resolved('192.0.2.8')], names);
    expect(viewOf(one, moved)).toMatchObject({ phase: 'rolling', nodes: 2 });
    expect(one.atWork()).toEqual(['n0']);
    expect(fragmentOf(one, 'CNFService.web')).toMatchObject({
      rolling: moved,
      counts: { nodes: 2, upToDate: 0, applying: 1, waiting: 1 },
      inSync: false,
    });
    one.answers('n0', 'applied');
    expect(fragmentOf(one, 'CNFService.web').counts).toMatchObject({ upToDate: 1 });
    one.allApply();
    expect(one.phase(moved)).toBe('committed');
    for (const node of ['n0', 'n1']) expect(objectsOf(one, node)).toEqual(['CNFNAT/webnat  192.0.2.8']);
    expect(fragmentOf(one, 'CNFService.web')).toMatchObject({ rolling: '', inSync: true, counts: { upToDate: 2 } });
  });

  it('keeps its addresses if the new ones fail, and these are not published again', () => {
    const one = withService();
    const moved = one.rolls([resolved('192.0.2.8')], names);
    one.answers('n0', 'invalid');
    one.allApply();
    expect([one.phase(moved), objectsOf(one, 'n0')]).toEqual(['ended', ['CNFNAT/webnat  192.0.2.7']]);
    expect(wanted(one).wanted).toEqual([{ name: HOST, published: { addresses: ['192.0.2.8'], change: moved } }]);
    // The config is known-bad. If the same addresses are published after all, they reach no node.
    const again = one.rolls([resolved('192.0.2.8')], names);
    expect(viewOf(one, again)).toMatchObject({
      phase: 'rejected',
      reasons: [{ fragment: `ResolvedName/${HOST}`, code: 'known-bad' }],
    });
  });

  it('keeps the addresses that a person rolls back to', () => {
    const one = withService();
    const moved = one.rolls([resolved('192.0.2.8')], names);
    one.allApply();
    one.merger.when({
      type: 'published',
      sequence: 100,
      source: NAMES_SOURCE,
      text: JSON.stringify({ rollbackOf: moved, takeOver: true }),
      storedMs: 0,
    });
    one.quiet();
    one.allApply();
    expect(objectsOf(one, 'n0')).toEqual(['CNFNAT/webnat  192.0.2.7']);
    expect(wanted(one).wanted).toEqual([{ name: HOST, published: { addresses: ['192.0.2.8'], change: moved } }]);
  });

  it('is changed together with its addresses, whatever comes first', () => {
    const one = withService();
    // The rollout of another service with the old address has begun when the new address comes.
    const other = one.rolls([service('other', { dport: 1 })]);
    const moved = one.rolls([resolved('192.0.2.8')], names);
    expect(viewOf(one, moved)).toMatchObject({ phase: 'waiting', waitsFor: [other] });
    one.allApply();
    expect([one.phase(other), one.phase(moved)]).toEqual(['committed', 'committed']);
    const again = one.rolls([resolved('192.0.2.9')], names);
    const third = one.rolls([local('third')]);
    expect(viewOf(one, third)).toMatchObject({ phase: 'waiting', waitsFor: [again] });
    one.allApply();
    const expected = ['CNFNAT/othernat  192.0.2.9', 'CNFNAT/thirdnat0 192.0.2.9 10.0.0.9', 'CNFNAT/webnat  192.0.2.9'];
    for (const node of ['n0', 'n1']) expect(objectsOf(one, node)).toEqual(expected);
  });

  it('is changed after a rollout that uses the old addresses for the first time', () => {
    const one = withService();
    one.rolls([], { remove: [{ kind: 'CNFService', name: 'web' }] });
    one.allApply();
    const first = one.rolls([service('other')]);
    const moved = one.rolls([resolved('192.0.2.8')], names);
    expect(viewOf(one, moved)).toMatchObject({ phase: 'waiting', waitsFor: [first] });
    one.allApply();
    expect([one.phase(first), one.phase(moved)]).toEqual(['committed', 'committed']);
    for (const node of ['n0', 'n1']) expect(objectsOf(one, node)).toEqual(['CNFNAT/othernat  192.0.2.8']);
  });

  it('reaches nodes that join, with the latest addresses', () => {
    const one = withService();
    one.starts(['n2']);
    one.announces('n2', { capabilities: CAPABILITIES });
    one.quiet();
    one.allApply();
    expect(objectsOf(one, 'n2')).toEqual(['CNFNAT/webnat  192.0.2.7']);
  });

  it('cannot lose its addresses, and they are unused once it is gone', () => {
    const one = withService();
    const gone = { remove: [{ kind: 'ResolvedName', name: HOST }], ...names };
    const lost = one.rolls([], gone);
    expect(viewOf(one, lost)).toMatchObject({ phase: 'rejected', reasons: [{ fragment: 'CNFService/web' }] });
    expect(viewOf(one, lost).reasons[0]?.message).toContain('change or delete CNFService/web first');
    // What was published is published again.
    expect(wanted(one)).toEqual({ wanted: [{ name: HOST, published: { addresses: [], change: lost } }], unused: [] });
    const found = one.rolls([resolved('192.0.2.7')], names);
    one.rolls([], { remove: [{ kind: 'CNFService', name: 'web' }] });
    one.allApply();
    expect(objectsOf(one, 'n0')).toEqual([]);
    expect(wanted(one)).toEqual({
      wanted: [],
      unused: [{ name: HOST, published: { addresses: ['192.0.2.7'], change: found } }],
    });
    expect(viewOf(one, one.rolls([], gone))).toMatchObject({ phase: 'committed', nodes: 0 });
    expect(wanted(one)).toEqual({ wanted: [], unused: [] });
  });

  it('has the addresses that another source has published, and these are not looked up', () => {
    const one = fleet();
    one.rolls([service(), resolved('192.0.2.7')]);
    one.allApply();
    expect(objectsOf(one, 'n0')).toEqual(['CNFNAT/webnat  192.0.2.7']);
    expect(wanted(one)).toEqual({ wanted: [], unused: [] });
    const taken = one.rolls([resolved('192.0.2.8')], names);
    expect(viewOf(one, taken).reasons[0]).toMatchObject({ code: 'owned-by' });
  });

  it('keeps what was published over a restart', () => {
    const one = withService();
    expect(wantedNames(one.newMerger().state)).toEqual(wanted(one));
    const copy = one.merger.core.load(JSON.parse(JSON.stringify(one.merger.core.dump(one.merger.state))), 0);
    expect(wantedNames(copy)).toEqual(wanted(one));
  });
});
