import type { FieldSet, ManagedFields } from '#libs/kube/lean';
import { extract, intersection, ownFields, restoredManagers, union } from './field-sets.js';

const IMAGE = 'k:{"name":"a"}';
const SET: FieldSet = {
  'f:metadata': { 'f:labels': { '.': {}, 'f:app': {} } },
  'f:spec': {
    'f:replicas': {},
    'f:containers': { [IMAGE]: { '.': {}, 'f:image': {} } },
    'f:finalizers': { 'v:"x"': {} },
  },
};
const OBJECT = {
  metadata: { name: 'w', labels: { app: 'w', other: 'o' } },
  spec: {
    replicas: 3,
    paused: true,
    containers: [
      { name: 'b', image: 'b:1' },
      { name: 'a', image: 'a:1', env: [] },
    ],
    finalizers: ['y', 'x'],
  },
};

test('the part of an object that fields name has the items of lists by their keys and values', () => {
  expect(extract(OBJECT, SET)).toEqual({
    metadata: { labels: { app: 'w' } },
    spec: { replicas: 3, containers: [{ name: 'a', image: 'a:1' }], finalizers: ['x'] },
  });
});

test('the items of lists can be in the order of the set, so that two objects can be compared', () => {
  const set: FieldSet = { 'k:{"name":"a"}': { '.': {} }, 'k:{"name":"b"}': { '.': {} } };
  const [a, b, c] = [{ name: 'a' }, { name: 'b' }, { name: 'c' }];
  expect(extract([b, c, a], set)).toEqual([b, a]);
  expect(extract([b, c, a], set, 'set')).toEqual([a, b]);
});

test('fields that the object does not have are left out, and so are their parents', () => {
  expect(extract({ spec: { paused: true } }, SET)).toBeUndefined();
  expect(extract({ metadata: { labels: {} } }, SET)).toEqual({ metadata: { labels: {} } });
});

test('sets of fields are joined and intersected', () => {
  const one: FieldSet = { 'f:a': { 'f:b': {}, 'f:c': {} }, 'f:d': {} };
  const other: FieldSet = { 'f:a': { 'f:c': {} }, 'f:e': {} };
  expect(union(one, other)).toEqual({ 'f:a': { 'f:b': {}, 'f:c': {} }, 'f:d': {}, 'f:e': {} });
  expect(intersection(one, other)).toEqual({ 'f:a': { 'f:c': {} } });
});

const managed = (manager: string, fieldsV1: FieldSet, more: ManagedFields = {}): ManagedFields => ({
  manager,
  operation: 'Update',
  apiVersion: 'v1',
  fieldsV1,
  ...more,
});

test('the fields of Sluice are those that it has applied, and not what it wrote otherwise', () => {
  const all = [
    managed('sluice', { 'f:a': {} }, { operation: 'Apply' }),
    managed('sluice', { 'f:b': {} }),
    managed('other', { 'f:c': {} }, { operation: 'Apply' }),
  ];
  expect(ownFields(all)).toEqual({ 'f:a': {} });
});

test('the manager that had a field has it again, and what others have set since stays theirs', () => {
  const now = [managed('sluice', { 'f:a': {}, 'f:b': {} }, { operation: 'Apply' }), managed('you', { 'f:d': {} })];
  const before = [managed('me', { 'f:a': {}, 'f:c': {} }), managed('you', { 'f:b': {} })];
  expect(restoredManagers(now, before, { 'f:a': {}, 'f:b': {} })).toEqual([
    managed('you', { 'f:d': {}, 'f:b': {} }),
    managed('me', { 'f:a': {} }),
  ]);
});
