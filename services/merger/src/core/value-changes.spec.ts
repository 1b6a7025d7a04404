import type { BoundField, BoundValue } from '#libs/contracts';
import { boundFieldKey, checkManifest } from '#libs/manifests';
import type { WantedValues } from './bindings.js';
import { changesOf, newValuesOf } from './value-changes.js';

const FIELD: BoundField = {
  from: 'cluster',
  apiVersion: 'v1',
  kind: 'ConfigMap',
  namespace: 'prod',
  name: 'about',
  fieldPath: 'data.region',
};
const OTHER: BoundField = { ...FIELD, from: 'hub', namespace: '', fieldPath: 'data.zone' };
const is = (value: string, field = FIELD): BoundValue => ({ ...field, value });
const none = (missing: string, field = FIELD): BoundValue => ({ ...field, missing });
const wanted = (more: Partial<WantedValues> = {}): WantedValues => ({
  node: 'c-1',
  fields: [FIELD],
  names: new Map([[boundFieldKey(FIELD), 'REGION']]),
  published: undefined,
  open: 0,
  ...more,
});
const before = { change: 'c5', values: [is('eu')] };

describe('the values to publish', () => {
  it('are those that differ from what was published, with words for people', () => {
    expect(newValuesOf(wanted(), [])).toBeUndefined();
    expect(newValuesOf(wanted(), [is('eu')])).toEqual({
      node: 'c-1',
      values: [is('eu')],
      words: ['binding REGION of c-1 is "eu": data.region of ConfigMap prod/about'],
      after: '',
    });
    expect(newValuesOf(wanted({ published: before }), [is('eu')])).toBeUndefined();
    expect(newValuesOf(wanted({ published: before }), [none('it does not exist')])).toMatchObject({
      after: 'c5',
      words: [
        'binding REGION of c-1 changed from "eu" to none (it does not exist): data.region of ConfigMap prod/about',
      ],
    });
  });

  it('keep what was published if nothing is read for it, and leave out what nobody wants', () => {
    const both = wanted({ fields: [FIELD, OTHER], published: before });
    expect(newValuesOf(both, [is('z', OTHER)])?.values).toEqual([is('eu'), is('z', OTHER)]);
    expect(newValuesOf(wanted({ published: { ...before, values: [is('eu'), is('z', OTHER)] } }), [])).toBeUndefined();
  });

  it('wait while two changes with values of the node are open', () => {
    const read = [is('us')];
    expect(newValuesOf(wanted({ published: before, open: 1 }), read)).toBeDefined();
    expect(newValuesOf(wanted({ published: before, open: 2 }), read)).toBeUndefined();
  });

  it('show no more than the start of a long value', () => {
    expect(newValuesOf(wanted(), [is('x'.repeat(4_000))])?.words[0]).toContain(`"${'x'.repeat(60)}…"`);
  });
});

describe('the changes', () => {
  const news = (node: string, value: string, after = 'c5') => ({
    node,
    values: [is(value), none('no', OTHER)],
    words: [`${node} changed`],
    after,
  });

  it('have what changes together, and can be published', () => {
    const [one, ...more] = changesOf([news('c-1', 'a'), news('c-2', 'b', ''), { ...news('c-3', ''), values: [] }]);
    expect(more).toEqual([]);
    expect(one?.message).toBe('c-1 changed; c-2 changed; c-3 changed');
    expect(one?.delete).toEqual([{ kind: 'BoundValues', name: 'c-3' }]);
    expect(one?.apply?.map((manifest) => checkManifest(manifest, ''))).toMatchObject([
      { ok: true, fragment: { name: 'c-1', spec: { after: 'c5' } } },
      { ok: true, fragment: { name: 'c-2' } },
    ]);
  });

  it('name only some of a thousand values, and fit into messages', () => {
    const many = Array.from({ length: 1_000 }, (_, i) => news(`c-${i}`, 'x'.repeat(1_000)));
    const changes = changesOf(many);
    expect(changes.length).toBeGreaterThan(1);
    expect(changes.flatMap(({ apply = [] }) => apply)).toHaveLength(1_000);
    for (const change of changes) expect(JSON.stringify(change).length).toBeLessThan(900 * 1_024);
    expect(changes[0]?.message).toMatch(/^c-0 changed; .*; and \d+ more$/);
  });

  it('are none without news', () => {
    expect(changesOf([])).toEqual([]);
  });
});
