import Ajv from 'ajv';
import { readFileSync } from 'node:fs';
import {
  DiffRequest,
  DrainedRequest,
  ClearRequest,
  PageRequest,
  PlanRequest,
  readRequest,
  REQUESTS,
  requestSchemas,
  SteerRequest,
} from '../index.js';
import type { Class } from '../shape/checked.js';

const hash = 'a'.repeat(64);

const GOOD: readonly (readonly [keyof typeof REQUESTS, object])[] = [
  ['ops.config.plan', { apply: [{}], delete: [], strategy: { maxFailures: 1 }, cursor: 'x', limit: 500 }],
  ['ops.config.plan', { apply: [], message: 'm', author: 'a' }],
  ['ops.config.diff', { node: 'w-1.dc1' }],
  ['ops.config.diff', { node: 'w-1', from: hash, to: hash }],
  ['ops.config.retry', { change: 'c1', by: 'me' }],
  ['ops.config.rollback', { change: 'c1', by: 'me' }],
  ['ops.rollout.list', {}],
  ['ops.rollout.get', { change: 'c12', limit: 1 }],
  ['ops.rollout.pause', { change: 'c12', by: 'me', reason: 'lunch' }],
  ['ops.rollout.resume', { change: 'c12' }],
  ['ops.rollout.abort', { change: 'c12' }],
  ['ops.node.list', { cursor: 'w-1' }],
  ['ops.node.get', { node: 'w-1' }],
  ['ops.node.why', { node: 'w-1' }],
  ['ops.node.skip', { node: 'w-1', reason: 'r' }],
  ['ops.node.remove', { node: 'w-1' }],
  ['ops.node.label', { node: 'w-1', set: { role: 'edge', 'a.b/c': '' }, remove: ['zone'] }],
  ['ops.node.drained', { node: 'w-1', lease: 'l', evicted: 0, by: 'drainer' }],
  ['ops.known-bad.list', {}],
  ['ops.known-bad.add', { hash, fleet: 'europe', node: 'w-1', change: 'c7', reason: 'a probe failed' }],
  ['ops.known-bad.clear', { hash, reason: 'fixed' }],
  ['ops.pool.list', { limit: 10 }],
  ['ops.pool.get', { pool: 'default' }],
  ['ops.pool.take', { node: 'w-1', owner: 'kured', reason: 'kernel', pool: 'edge', by: 'me', forMs: 1_800_000 }],
  ['ops.pool.give', { node: 'w-1', owner: 'kured' }],
];

const BAD: readonly (readonly [keyof typeof REQUESTS, unknown, string, string])[] = [
  ['ops.config.plan', { aply: [] }, 'aply', 'unknown-field'],
  ['ops.config.plan', { apply: {} }, 'apply', 'wrong-type'],
  ['ops.config.diff', {}, 'node', 'required'],
  ['ops.config.diff', { node: 'w_1' }, 'node', 'bad-node'],
  ['ops.config.diff', { node: 'w-1', from: 'abc' }, 'from', 'bad-hash'],
  ['ops.config.retry', { change: '12' }, 'change', 'bad-change'],
  ['ops.config.rollback', {}, 'change', 'required'],
  ['ops.rollout.list', { limit: 0 }, 'limit', 'out-of-range'],
  ['ops.rollout.list', { limit: 501 }, 'limit', 'out-of-range'],
  ['ops.rollout.get', { change: 'c12', node: 'x' }, 'node', 'unknown-field'],
  ['ops.rollout.pause', { change: 'c12', by: 7 }, 'by', 'wrong-type'],
  ['ops.node.drained', { node: 'w-1', evicted: -1 }, 'evicted', 'out-of-range'],
  ['ops.node.label', { node: 'w-1', set: { role: 7 } }, 'set.role', 'wrong-type'],
  ['ops.node.label', { node: 'w-1', set: { 'a b': '' } }, 'set["a b"]', 'bad-label-key'],
  ['ops.node.label', { node: 'w-1', set: { role: 'a=b' } }, 'set.role', 'bad-label-value'],
  ['ops.node.label', { node: 'w-1', set: { role: 'x'.repeat(64) } }, 'set.role', 'bad-label-value'],
  ['ops.node.label', { node: 'w-1', remove: ['-'] }, 'remove[0]', 'bad-label-key'],
  ['ops.known-bad.add', { hash, fleet: 'europe', node: 'w-1', change: 'seven', reason: 'r' }, 'change', 'bad-change'],
  ['ops.known-bad.clear', { hash }, 'reason', 'required'],
  ['ops.known-bad.clear', { hash, reason: ' ' }, 'reason', 'required'],
  ['ops.pool.get', { pool: 'A' }, 'pool', 'bad-pool'],
  ['ops.pool.take', { node: 'w-1' }, 'owner', 'required'],
  ['ops.pool.take', { node: 'w-1', owner: 'kured', forMs: 0 }, 'forMs', 'out-of-range'],
  ['ops.pool.take', { node: 'w-1', owner: 'kured', forMs: '30m' }, 'forMs', 'wrong-type'],
  ['ops.pool.take', { node: 'w-1', owner: ' ' }, 'owner', 'required'],
  ['ops.pool.give', { owner: 'kured' }, 'node', 'required'],
  ['ops.pool.list', [], '', 'wrong-type'],
  ['ops.pool.list', null, '', 'wrong-type'],
];

describe('readRequest', () => {
  test.each(GOOD)('%s accepts %j', (subject, body) => {
    expect(readRequest(REQUESTS[subject] as Class, body)).toMatchObject({ ok: true, value: body });
  });

  test.each(BAD)('%s refuses %j', (subject, body, field, code) => {
    const read = readRequest(REQUESTS[subject] as Class, body);
    expect(read.ok ? [] : read.reasons.map((reason) => [reason.field, reason.code])).toEqual([[field, code]]);
  });

  test('an empty payload is an empty request', () => {
    expect(readRequest(PageRequest, undefined).ok).toBe(true);
    expect(readRequest(PageRequest, '').ok).toBe(true);
    expect(readRequest(DrainedRequest, '').ok).toBe(false);
  });

  test('values have the types and defaults of their class', () => {
    const read = readRequest(SteerRequest, { change: 'c1' });
    expect(read.ok && [read.value.change, read.value.by, read.value.reason]).toEqual(['c1', 'nats', '']);
    expect([PlanRequest, DiffRequest, ClearRequest].map(({ name }) => name)).toEqual([
      'PlanRequest',
      'DiffRequest',
      'ClearRequest',
    ]);
  });
});

describe('requestSchemas', () => {
  const ajv = new Ajv({
    strict: true,
    allErrors: true,
    strictRequired: false,
    strictTypes: false,
    strictTuples: false,
  });
  const validators = new Map(
    Object.entries(requestSchemas()).map(([subject, schema]) => [subject, ajv.compile(schema)]),
  );

  test.each(GOOD)('%s accepts %j', (subject, body) => {
    expect(validators.get(subject)?.(body)).toBe(true);
  });

  test.each(BAD)('%s refuses %j', (subject, body) => {
    expect(validators.get(subject)?.(body)).toBe(false);
  });
});

test('there is a class for every request of docs/reference/protocol.md', () => {
  const protocol = readFileSync('docs/reference/protocol.md', 'utf8');
  const documented = protocol
    .split('\n')
    .filter((line) => line.startsWith('| `ops.'))
    .flatMap((line) => {
      const fields = [...(line.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, word]) => word as string);
      const prefix = (fields[0] ?? '').replace(/[^.]+$/, '');
      return fields.map((word) => (word.startsWith('ops.') ? word : prefix + word));
    });
  expect(Object.keys(REQUESTS).sort()).toEqual(documented.sort());
});

test('a text that has no UTF-8 is refused, except in the manifests of a plan, which the plan answers', () => {
  const half = 'half of a pair: \ud83d';
  const taken = readRequest(REQUESTS['ops.pool.take'], { node: 'w-1', owner: 'o', reason: half });
  expect(taken).toMatchObject({ ok: false, reasons: [{ field: 'reason', code: 'not-unicode' }] });
  expect(readRequest(REQUESTS['ops.config.plan'], { apply: [{ kind: half }] })).toMatchObject({ ok: true });
});
