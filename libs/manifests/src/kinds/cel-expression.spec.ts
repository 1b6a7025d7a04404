import { checkManifest } from '../index.js';
import { manifestOf } from '../manifest.fixture.js';
import { celExpression } from './cel-expression.js';

const KUBE = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'prod', name: 'web' };
const reasonsOf = (kube: object) => {
  const checked = checkManifest(manifestOf('Probe', { kube: { ...KUBE, ...kube } }), 'place');
  return checked.ok ? [] : checked.reasons;
};
const valueOf = (expression: string, object: unknown): unknown => {
  const checked = celExpression(expression);
  if (typeof checked === 'string') throw new Error(checked);
  return checked.evaluate(object);
};

const OBJECT = {
  metadata: { name: 'web', labels: { 'app.kubernetes.io/name': 'web' }, creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { replicas: 3, weight: 0.5, paused: null },
  status: {
    readyReplicas: 2,
    conditions: [
      { type: 'Available', status: 'True' },
      { type: 'Progressing', status: 'False' },
    ],
  },
};

test.each([
  ['object.status.readyReplicas >= 2', true],
  ['object.status.readyReplicas == object.spec.replicas', false],
  ['object.status.readyReplicas + 1 == object.spec.replicas', true],
  ['object.status.readyReplicas > 1.5 && object.spec.weight < 1', true],
  ['object.status.conditions.exists(c, c.type == "Available" && c.status == "True")', true],
  ['object.status.conditions.all(c, c.status == "True")', false],
  ['object.status.conditions.filter(c, c.status == "True").size() == 1', true],
  ['object.status.conditions.map(c, c.type) == ["Available", "Progressing"]', true],
  ['object.metadata.labels["app.kubernetes.io/name"] == "web"', true],
  ['has(object.status.failedReplicas)', false],
  ['object.?status.?failedReplicas.orValue(0) == 0', true],
  ['"paused" in object.spec && object.spec.paused == null', true],
  ['object.metadata.name.matches("^w.b$")', true],
  ['timestamp(object.metadata.creationTimestamp) < timestamp("2026-02-01T00:00:00Z")', true],
])('%s is %s', (expression, value) => {
  expect(valueOf(expression, OBJECT)).toBe(value);
  expect(reasonsOf({ expression })).toEqual([]);
});

test.each([
  ['object.status.x > 1', 'no such key: x'],
  ['object.nothing.x > 1', 'no such key: nothing'],
  ['object.status.conditions[2].type == "x"', 'no such key: index out of bounds, index 2 >= size 2'],
  ['object.metadata.name > 1', 'no such overload: dyn<string> > int'],
  ['object.spec.replicas / 0 == 1', 'division by zero'],
  ['object.constructor == 1', 'no such key: constructor'],
  ['object.__proto__ == 1', 'no such key: __proto__'],
])('%s has no value, and the error says why', (expression, why) => {
  expect(() => valueOf(expression, OBJECT)).toThrow(why);
});

test.each([
  ['', 'unexpected token: EOF at character 1'],
  ['object.status.x >', 'unexpected token: EOF at character 18'],
  ['object.a = 1', 'unexpected character: = at character 10'],
  ['object.a ==\n  object.b +\n', 'unexpected token: EOF at line 3, character 1'],
  ['status.x == 1', 'unknown variable: status at character 1; the only variable is `object`, as in object.status'],
  ['object.a.exists(x, y)', 'unknown variable: y at character 20; the only variable is `object`, as in object.status'],
  ['isReady(object)', "found no matching overload for 'isReady(dyn)' at character 1"],
  ['"a" + 1 == "a1"', 'no such overload: string + int at character 1'],
  ['object.a', undefined],
  ['object.a + 1', 'it must be true or false, but is of type int'],
  ['1 + 1', 'it must be true or false, but is of type int'],
  [`${'('.repeat(60)}true${')'.repeat(60)}`, 'exceeded maxDepth (50) at character 51'],
  [Array(400).fill('!1').join('||'), 'exceeded maxAstNodes (500) at character 670'],
  [`"${'a'.repeat(2_000)}" == ""`, 'it is longer than 2000 characters'],
])('%j is checked before it reaches a cluster: %s', (expression, why) => {
  const checked = celExpression(expression);
  expect(typeof checked === 'string' ? checked : undefined).toBe(why);
  if (why !== undefined)
    expect(reasonsOf({ expression })).toMatchObject([{ field: 'spec.kube.expression', code: 'bad-expression' }]);
});

test('a refusal names the expression', () => {
  expect(reasonsOf({ expression: 'status.x == 1' })[0]?.message).toBe(
    'must be a CEL expression, and "status.x == 1" is not: unknown variable: status at character 1; the only variable is `object`, as in object.status',
  );
});

test('an object that must be absent can have no expression', () => {
  expect(reasonsOf({ expression: 'true', absent: true })).toMatchObject([
    { field: 'spec.kube.absent', code: 'forbidden', message: 'expression is given, too: keep one of them' },
  ]);
  expect(reasonsOf({ expression: 'true', condition: 'Available' })).toEqual([]);
});
