import type { BoundValue, Config, Fragment } from '#libs/contracts';
import { boundFieldKey } from '#libs/manifests';
import { factOf } from '#libs/testing';
import { BINDINGS_SOURCE, wantedValues } from '../../services/merger/src/core/index.js';
import { Installation } from './installation.fixture.js';

const CAPABILITIES = ['kind:KubeObjects', 'action:none', 'bindings:objects', 'applier:remote'];
const FIELD = {
  from: 'cluster',
  apiVersion: 'v1',
  kind: 'ConfigMap',
  namespace: 'prod',
  name: 'about',
  fieldPath: 'data.region',
} as const;
const REGION = { name: 'REGION', object: FIELD };
const fragment = (kind: string, name: string, spec: object): Fragment => ({
  kind,
  name,
  labels: {},
  spec: spec as Fragment['spec'],
});
const objects = (
  bindings: readonly object[],
  data: object = { value: '{{ bindings.REGION }}' },
  name = 'x',
): Fragment =>
  fragment('KubeObjects', name, {
    nodeSelector: {},
    bindings,
    objects: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data }],
  });
const values = (node: string, after: string, ...found: readonly object[]): Fragment =>
  fragment('BoundValues', node, { values: found, ...(after === '' ? {} : { after }) });
const is = (value: string, field: object = FIELD): object => ({ ...field, value });
const isMissing = (missing: string): object => ({ ...FIELD, missing });
const read = { source: BINDINGS_SOURCE };

function fleet(nodes: readonly string[] = ['n0', 'n1']): Installation {
  const one = new Installation();
  one.starts(nodes);
  for (const node of nodes) one.announces(node, { capabilities: CAPABILITIES, labels: { zone: `z-${node}` } });
  one.quiet();
  one.allApply();
  return one;
}
const viewOf = (one: Installation, change: string) => one.merger.read().view('changes', change);
const fieldsOf = (one: Installation, node: string): unknown =>
  one.merger.read().core.view(one.merger.state, { bucket: 'bindings', key: node });
const wanted = (one: Installation) => wantedValues(one.merger.read().state);
const dataOf = (one: Installation, node: string): unknown => {
  const { fragments } = JSON.parse(one.text(node, one.status(node).hash)) as Config;
  return fragments.map(({ spec }) => {
    expect(spec).not.toHaveProperty('bindings');
    return (spec['objects'] as unknown as readonly { readonly data: object }[])[0]?.data;
  });
};
const silence = (one: Installation, node: string): void => {
  one.inventory.given(factOf('node.silent', { node }));
  one.quiet();
};

/** Both nodes have a fragment with a value of their own. Returns what was published last for each. */
function bound(): { readonly one: Installation; readonly last: Record<string, string> } {
  const one = fleet();
  one.rolls([objects([REGION])]);
  const change = one.rolls([values('n0', '', is('eu')), values('n1', '', is('us'))], read);
  one.allApply();
  return { one, last: { n0: change, n1: change } };
}

describe('a fragment with a binding to a field', () => {
  it('waits until the values are read, and is then one rollout for all nodes', () => {
    const one = fleet();
    const early = one.rolls([objects([REGION])]);
    expect(viewOf(one, early)).toMatchObject({ phase: 'waiting', needs: ['BoundValues/n0'] });
    expect(fieldsOf(one, 'n0')).toEqual({ node: 'n0', fields: [FIELD] });
    expect(wanted(one).map(({ node, fields }) => [node, fields])).toEqual([
      ['n0', [FIELD]],
      ['n1', [FIELD]],
    ]);
    const some = one.rolls([values('n0', '', is('eu'))], read);
    expect([viewOf(one, some).phase, viewOf(one, early).needs]).toEqual(['committed', ['BoundValues/n1']]);
    one.rolls([values('n1', '', is('us'))], read);
    expect(viewOf(one, early)).toMatchObject({ phase: 'rolling', nodes: 2 });
    expect(one.atWork()).toEqual(['n0']);
    one.allApply();
    expect([dataOf(one, 'n0'), dataOf(one, 'n1')]).toEqual([[{ value: 'eu' }], [{ value: 'us' }]]);
  });

  it('is computed again for all nodes only if something has changed', () => {
    const { one, last } = bound();
    let before = wanted(one);
    expect(wanted(one)).toBe(before);
    one.announces('n0', { capabilities: CAPABILITIES, labels: { zone: 'z-n0' } });
    one.quiet();
    expect(wanted(one)).toBe(before);
    for (const [what, change] of [
      ['a join', () => one.starts(['n2']).announces('n2', { capabilities: CAPABILITIES, labels: { zone: 'z-n2' } })],
      ['other labels', () => one.announces('n1', { capabilities: CAPABILITIES, labels: { zone: 'moved' } })],
      ['a value', () => one.rolls([values('n0', last['n0'] ?? '', is('ap'))], read)],
      ['a commit', () => one.allApply()],
    ] as const) {
      change();
      one.quiet();
      expect([what, wanted(one) === before]).toEqual([what, false]);
      expect(wanted(one)).toEqual(wantedValues(one.newMerger().state));
      before = wanted(one);
    }
  });

  it('gets a new value in a rollout of the affected node only', () => {
    const { one, last } = bound();
    const moved = one.rolls([values('n1', last['n1'] ?? '', is('ap'))], read);
    expect(viewOf(one, moved)).toMatchObject({ phase: 'rolling', nodes: 1 });
    expect(one.atWork()).toEqual(['n1']);
    one.allApply();
    expect([dataOf(one, 'n0'), dataOf(one, 'n1')]).toEqual([[{ value: 'eu' }], [{ value: 'ap' }]]);
    const fragmentView = one.merger.read().view('fragments', 'KubeObjects.x');
    expect(fragmentView).toMatchObject({ inSync: true, counts: { nodes: 2, upToDate: 2 } });
  });

  it('keeps the old value if the new one fails, which says nothing about the old one or other nodes', () => {
    const { one, last } = bound();
    const moved = one.rolls(
      [values('n0', last['n0'] ?? '', is('bad')), values('n1', last['n1'] ?? '', is('ap'))],
      read,
    );
    one.answers('n0', 'invalid');
    one.allApply();
    expect([viewOf(one, moved).outcome, dataOf(one, 'n0'), dataOf(one, 'n1')]).toEqual([
      'reverted',
      [{ value: 'eu' }],
      [{ value: 'us' }],
    ]);
    expect(wanted(one)[1]?.published).toEqual({ values: [is('ap')], change: moved });
    const next = one.rolls([values('n0', moved, is('eu-2')), values('n1', moved, is('ap-2'))], read);
    one.allApply();
    expect([viewOf(one, next).phase, dataOf(one, 'n1')]).toEqual(['committed', [{ value: 'ap-2' }]]);
  });

  it('does not get an older value again: what another copy has published since is refused', () => {
    const { one, last } = bound();
    const newer = one.rolls([values('n0', last['n0'] ?? '', is('newer'))], read);
    const late = one.rolls([values('n0', last['n0'] ?? '', is('older'))], read);
    expect(viewOf(one, late)).toMatchObject({ phase: 'rejected', reasons: [{ code: 'conflict' }] });
    expect(viewOf(one, late).reasons[0]?.message).toContain(`was published as ${newer} meanwhile`);
    one.allApply();
    expect(dataOf(one, 'n0')).toEqual([{ value: 'newer' }]);
  });

  it('does not reach a node whose value is missing, which keeps what it has and says why', () => {
    const { one, last } = bound();
    const lost = one.rolls([values('n0', last['n0'] ?? '', isMissing('it does not exist'))], read);
    expect(viewOf(one, lost)).toMatchObject({ phase: 'committed', nodes: 0 });
    const [reason] = one.status('n0').incompatibleReasons;
    expect(reason?.message).toBe(
      'binding REGION: data.region of ConfigMap prod/about cannot be used: it does not exist',
    );
    expect(dataOf(one, 'n0')).toEqual([{ value: 'eu' }]);
    // Other changes go on without it.
    const other = one.rolls([objects([REGION], { value: '{{ bindings.REGION }}', more: '1' })]);
    expect(viewOf(one, other)).toMatchObject({ phase: 'rolling', nodes: 1 });
    one.allApply();
    expect(dataOf(one, 'n1')).toEqual([{ value: 'us', more: '1' }]);
    const back = one.rolls([values('n0', lost, is('eu-2'))], read);
    one.allApply();
    expect([one.phase(back), dataOf(one, 'n0')]).toEqual(['committed', [{ value: 'eu-2', more: '1' }]]);
    expect(one.status('n0').incompatibleReasons).toEqual([]);
  });

  it('is rolled back to what the node had if the first value after a missing one fails', () => {
    const { one, last } = bound();
    const lost = one.rolls([values('n0', last['n0'] ?? '', isMissing('it does not exist'))], read);
    const bad = one.rolls([values('n0', lost, is('bad'))], read);
    one.answers('n0', 'invalid');
    one.allApply();
    expect([viewOf(one, bad).outcome, one.atWork(), dataOf(one, 'n0')]).toEqual(['reverted', [], [{ value: 'eu' }]]);
  });

  it('does not wait for a node that is silent, and reaches it when it has reported its value', () => {
    const one = fleet();
    const change = one.rolls([objects([REGION])]);
    one.rolls([values('n0', '', is('eu'))], read);
    expect(viewOf(one, change).phase).toBe('waiting');
    silence(one, 'n1');
    expect(viewOf(one, change)).toMatchObject({ phase: 'rolling', nodes: 1 });
    one.allApply();
    expect(one.phase(change)).toBe('committed');
    expect(one.status('n1').incompatibleReasons[0]?.message).toContain('is not known yet, and the node is silent');
    one.inventory.given(factOf('node.heard', { node: 'n1' }));
    one.rolls([values('n1', '', is('us'))], read);
    one.allApply();
    expect(dataOf(one, 'n1')).toEqual([{ value: 'us' }]);
  });

  it('uses the default while a value is missing, but not before it was read', () => {
    const one = fleet(['n0']);
    const change = one.rolls([objects([{ ...REGION, default: 'none' }])]);
    expect(viewOf(one, change).phase).toBe('waiting');
    const lost = one.rolls([values('n0', '', isMissing('it does not exist'))], read);
    one.allApply();
    expect(dataOf(one, 'n0')).toEqual([{ value: 'none' }]);
    one.rolls([values('n0', lost, is('eu'))], read);
    one.allApply();
    expect(dataOf(one, 'n0')).toEqual([{ value: 'eu' }]);
  });

  it('is rejected with the names of its bindings if a template names another one', () => {
    const one = fleet();
    const change = one.rolls([objects([{ name: 'ZONE', label: 'zone' }], { value: '{{ bindings.REGION }}' })]);
    expect(viewOf(one, change).reasons[0]).toMatchObject({
      code: 'unknown-template-key',
      message: '{{ bindings.REGION }}: the fragment has no such binding; it has ZONE',
    });
  });

  it('reads the object of each node, if its name contains one of the labels', () => {
    const one = fleet();
    const named = { name: 'REGION', object: { ...FIELD, from: 'hub', name: '{{ node.labels.zone }}' } };
    one.rolls([objects([named])]);
    expect(fieldsOf(one, 'n1')).toEqual({ node: 'n1', fields: [{ ...FIELD, from: 'hub', name: 'z-n1' }] });
    one.announces('n1', { capabilities: CAPABILITIES, labels: { zone: 'moved' } });
    one.quiet();
    expect(fieldsOf(one, 'n1')).toEqual({ node: 'n1', fields: [{ ...FIELD, from: 'hub', name: 'moved' }] });
  });

  it('is not for a node whose applier reads no objects, and others are not held up', () => {
    const one = fleet(['n0']);
    one.starts(['old']);
    one.announces('old', { capabilities: ['kind:KubeObjects', 'action:none'] });
    one.quiet();
    const change = one.rolls([objects([REGION])]);
    one.rolls([values('n0', '', is('eu'))], read);
    one.allApply();
    expect(one.phase(change)).toBe('committed');
    expect(one.status('old').incompatibleReasons[0]?.message).toContain('the applier of the node reads no objects');
  });

  it('has values that a person has published, and these are not read', () => {
    const one = fleet(['n0']);
    one.rolls([objects([REGION]), values('n0', '', is('pinned'))]);
    one.allApply();
    expect(dataOf(one, 'n0')).toEqual([{ value: 'pinned' }]);
    expect(wanted(one)).toEqual([]);
    expect(viewOf(one, one.rolls([values('n0', '', is('eu'))], read)).reasons[0]).toMatchObject({ code: 'owned-by' });
  });

  it('leaves nothing to read once it is gone, nor once its node is', () => {
    const { one } = bound();
    one.rolls([], { remove: [{ kind: 'KubeObjects', name: 'x' }] });
    one.allApply();
    expect(fieldsOf(one, 'n0')).toBeUndefined();
    expect(wanted(one).map(({ node, fields }) => [node, fields])).toEqual([
      ['n0', []],
      ['n1', []],
    ]);
    const remove = ['n0', 'n1'].map((name) => ({ kind: 'BoundValues', name }));
    expect(viewOf(one, one.rolls([], { remove, ...read }))).toMatchObject({ phase: 'committed', nodes: 0 });
    expect(wanted(one)).toEqual([]);
  });

  it('keeps what was published over a restart', () => {
    const { one } = bound();
    expect(wantedValues(one.newMerger().state)).toEqual(wanted(one));
    const copy = one.merger.core.load(JSON.parse(JSON.stringify(one.merger.core.dump(one.merger.state))), 0);
    expect(wantedValues(copy)).toEqual(wanted(one));
    expect(one.merger.core.view(copy, { bucket: 'bindings', key: 'n0' })).toEqual(fieldsOf(one, 'n0'));
  });
});

describe('a binding to a label', () => {
  const ZONE = { name: 'ZONE', label: 'zone' };
  it('has the value of the label, and follows it', () => {
    const one = fleet(['n0']);
    one.commits([objects([ZONE], { value: '{{ bindings.ZONE }}' })]);
    expect([dataOf(one, 'n0'), fieldsOf(one, 'n0')]).toEqual([[{ value: 'z-n0' }], undefined]);
    one.announces('n0', { capabilities: CAPABILITIES, labels: { zone: 'other' } });
    one.quiet();
    one.allApply();
    expect(dataOf(one, 'n0')).toEqual([{ value: 'other' }]);
  });

  it('has its default on nodes without the label, which otherwise do not get the fragment', () => {
    const one = fleet(['n0']);
    one.commits([objects([{ name: 'ZONE', label: 'other', default: 'none' }], { value: '{{ bindings.ZONE }}' })]);
    expect(dataOf(one, 'n0')).toEqual([{ value: 'none' }]);
    const change = one.rolls([objects([{ name: 'ZONE', label: 'other' }], { value: '{{ bindings.ZONE }}' })]);
    expect(viewOf(one, change)).toMatchObject({ phase: 'committed', nodes: 0 });
    expect(one.status('n0').incompatibleReasons[0]?.message).toBe('binding ZONE: the node has no label other');
  });
});

it('values arrive in any order and any number of times: the nodes end with the last ones', () => {
  for (let seed = 0; seed < 15; seed += 1) {
    let [next, state] = [seed, 0];
    const chance = (n: number): number => {
      next = (next * 1_103_515_245 + 12_345) % 2_147_483_648;
      return Math.floor(next / 65_536) % n;
    };
    const one = fleet();
    one.publishes([objects([REGION])]);
    const now: Record<string, string> = {};
    const act = (): void => {
      const node = `n${chance(2)}`;
      switch (chance(5)) {
        case 0:
        case 1: {
          // What Sluice reads and publishes, perhaps twice, perhaps based on something outdated.
          const { published } = wanted(one).find((each) => each.node === node) ?? {};
          const after = chance(4) === 0 ? '' : (published?.change ?? '');
          state += 1;
          const change = one.publishes([values(node, after, is(`v${state}`))], read);
          if (viewOf(one, change).phase !== 'rejected') now[node] = `v${state}`;
          one.publishes([values(node, after, is('stale'))], read);
          break;
        }
        case 2:
          one.publishes([objects([REGION], { value: '{{ bindings.REGION }}', n: String(state) })]);
          break;
        case 3:
          one.quiet();
          break;
        case 4:
          for (const at of one.atWork()) one.answers(at, 'applied');
      }
    };
    for (let i = 0; i < 10; i += 1) act();
    for (const node of ['n0', 'n1']) {
      const { published } = wanted(one).find((each) => each.node === node) ?? {};
      now[node] = `last-${node}`;
      one.publishes([values(node, published?.change ?? '', is(now[node]))], read);
    }
    one.quiet();
    one.allApply();
    for (const node of ['n0', 'n1']) expect([seed, dataOf(one, node)]).toMatchObject([seed, [{ value: now[node] }]]);
  }
});

it('a field is identified by everything that says where it is', () => {
  const fields = [FIELD, { ...FIELD, from: 'hub' as const }, { ...FIELD, namespace: '' }, { ...FIELD, name: 'b' }];
  expect(new Set((fields as unknown as BoundValue[]).map(boundFieldKey)).size).toBe(fields.length);
});
