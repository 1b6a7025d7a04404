import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { OpsError } from '#libs/client';
import type { ViewBucket } from '#libs/contracts';
import { REQUESTS, requestSchemas, type RequestSubject } from '#libs/manifests';
import { fleetFixture } from './fleet.js';
import { file } from './manifests.js';

/** A value for each field that some request requires. */
const VALUES: Readonly<Record<string, string>> = {
  node: 'edge-01.dc1',
  change: 'c1',
  pool: 'edge',
  fleet: 'europe',
  hash: '0123456789abcdef'.repeat(4),
  owner: 'a spec',
  reason: 'a spec',
};
/** Other values, so that no request depends on an earlier one. */
const OWN_VALUES: Partial<Record<RequestSubject, object>> = {
  'ops.node.remove': { node: 'core-01.dc1', force: true },
  // A rejected change: a committed one is refused.
  'ops.config.retry': { change: 'c2' },
  'ops.config.rollback': { change: 'c2' },
  'ops.known-bad.add': { hash: 'f'.repeat(64) },
};

/** Requests that an idle fleet refuses, and why. All others succeed. */
const REFUSALS: Partial<Record<RequestSubject, string>> = {
  'ops.rollout.pause': 'conflict',
  'ops.rollout.resume': 'conflict',
  'ops.rollout.abort': 'conflict',
  'ops.node.skip': 'conflict',
  'ops.config.rollback': 'conflict',
  'ops.node.drained': 'not-found',
  'ops.known-bad.clear': 'not-found',
};
/** Requests whose answer is the value of a key. */
const KEYS: Partial<Record<RequestSubject, readonly [bucket: ViewBucket, key: string]>> = {
  'ops.rollout.get': ['rollouts', 'c1'],
  'ops.node.get': ['nodes', 'edge-01.dc1'],
  'ops.pool.get': ['pools', 'edge'],
};

const rowsOf = (page: string): readonly (readonly string[])[] =>
  readFileSync(join(__dirname, '../../docs/reference', page), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) => line.split(' | ').map((cell) => cell.replace(/^\| | \|$/g, '').trim()));

const CODES = rowsOf('error-codes.md').flatMap(([code = '', status = '']) =>
  /^\d{3}$/.test(status) ? [code.replaceAll('`', '')] : [],
);

/** The fields of an answer as the protocol documents them, with a question mark if they may be absent. */
function documentedFields(subject: RequestSubject): readonly string[] {
  const row = rowsOf('protocol.md').find(([cell = '']) => {
    if (!cell.startsWith('`')) return false;
    const [first = '', ...more] = [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
    const prefix = first.replace(/[^.]+$/, '');
    return [first, ...more.map((name) => (name.startsWith('ops.') ? name : prefix + name))].includes(subject);
  });
  let fields = /`\{(.*?)\}`/.exec(row?.[3] ?? '')?.[1] ?? '';
  while (/[[{]/.test(fields)) fields = fields.replaceAll(/\[[^[\]{}]*\]|\{[^[\]{}]*\}/g, '');
  return fields.split(',').map((field) => field.replace(/:.*/, '').trim());
}

function requiredBody(subject: RequestSubject): object {
  const { definitions } = requestSchemas()[subject] as {
    readonly definitions: Readonly<Record<string, { readonly required?: readonly string[] }>>;
  };
  const { required = [] } = definitions[REQUESTS[subject].name] ?? {};
  return { ...Object.fromEntries(required.map((field) => [field, VALUES[field]])), ...OWN_VALUES[subject] };
}

describe('a request with only the fields that it requires', () => {
  const fixture = fleetFixture({ sizes: [1, 1, 1] });

  beforeAll(async () => {
    const { fleet } = fixture;
    const rejected = await fleet.apply(file('needs-label', '{{ node.labels.nobody-has-it }}'));
    expect(await fleet.ended(rejected)).toMatchObject({ change: 'c2', phase: 'rejected' });
  });

  test.each(Object.keys(REQUESTS) as RequestSubject[])('%s is answered as documented', async (subject) => {
    const { client } = fixture.fleet;
    const answer = await client.request<object>(subject, requiredBody(subject)).catch((error: unknown) => error);
    const code = REFUSALS[subject];
    if (code !== undefined || answer instanceof Error) {
      expect(answer).toBeInstanceOf(OpsError);
      expect(answer).toMatchObject({ code, message: expect.stringMatching(/\w/) });
      return expect(CODES).toContain(code);
    }
    const [bucket, key] = KEYS[subject] ?? [];
    if (bucket !== undefined) {
      const { ledger: _, ...value } = (await client.get(bucket, key as string)) as object & { ledger: number };
      return expect(Object.keys(answer as object)).toEqual(expect.arrayContaining(Object.keys(value)));
    }
    const fields = documentedFields(subject);
    const [always, sometimes] = [false, true].map((maybe) => fields.filter((field) => field.endsWith('?') === maybe));
    expect(Object.keys(answer as object)).toEqual(expect.arrayContaining(always as string[]));
    expect([...(always as string[]), ...(sometimes as string[]).map((field) => field.slice(0, -1))]).toEqual(
      expect.arrayContaining(Object.keys(answer as object)),
    );
  });
});
