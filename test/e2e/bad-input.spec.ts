import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Reason } from '#libs/contracts';
import { until } from '#libs/testing';
import { fleetFixture } from './fleet.js';
import { file, manifest, type Manifest } from './manifests.js';
import { NatsCli } from './nats-cli.js';
import { testWith } from './needs.js';

/** A bad message, and the one place that the answer must name. */
interface Case {
  readonly body: string;
  readonly fragment: string;
  readonly field: string;
  readonly code: string;
  readonly message: RegExp;
}

const GOOD = file('good', 'good\n');
const json = (...apply: readonly unknown[]): string => JSON.stringify({ apply });
const withSpec = (spec: object): Manifest => ({ ...GOOD, spec: { ...GOOD.spec, ...spec } });
const named = (name: string): object => ({ ...GOOD, metadata: { name } });
const { nodeSelector: _, ...unselecting } = GOOD.spec;
const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;

const CASES: Readonly<Record<string, Case>> = {
  'text that is not JSON': {
    body: 'apiVersion: sluice.dev/v1alpha1\n',
    fragment: '',
    field: '',
    code: 'not-json',
    message: /line 1, column 1/,
  },
  nothing: { body: '', fragment: '', field: '', code: 'not-json', message: /not JSON/ },
  'an array': { body: JSON.stringify([GOOD]), fragment: '', field: '', code: 'wrong-type', message: /list/ },
  'a change with nothing in it': {
    body: '{"apply": []}',
    fragment: '',
    field: '',
    code: 'empty-change',
    message: /nothing to apply/,
  },
  'an unknown kind': {
    body: json({ ...GOOD, kind: 'Fiel' }),
    fragment: 'Fiel/good',
    field: 'kind',
    code: 'unknown-kind',
    message: /[Kk]nown kinds: File, /,
  },
  'an unknown field': {
    body: json(withSpec({ contents: 'x' })),
    fragment: 'File/good',
    field: 'spec.contents',
    code: 'unknown-field',
    message: /unknown field/,
  },
  'an unknown field in the change': {
    body: JSON.stringify({ apply: [GOOD], when: 'now' }),
    fragment: '',
    field: 'when',
    code: 'unknown-field',
    message: /unknown field/,
  },
  'a wrong type': {
    body: json(withSpec({ content: 7 })),
    fragment: 'File/good',
    field: 'spec.content',
    code: 'wrong-type',
    message: /number/,
  },
  'a missing selector': {
    body: json({ ...GOOD, spec: unselecting }),
    fragment: 'File/good',
    field: 'spec.nodeSelector',
    code: 'required',
    message: /\{\}/,
  },
  'an unsupported operator': {
    body: json(withSpec({ nodeSelector: { matchExpressions: [{ key: 'zone', operator: 'Gt', values: ['1'] }] } })),
    fragment: 'File/good',
    field: 'spec.nodeSelector.matchExpressions[0].operator',
    code: 'unknown-operator',
    message: /In, NotIn, Exists/,
  },
  'two fragments for one path': {
    body: json(GOOD, manifest('File', 'twin', { ...GOOD.spec })),
    fragment: 'File/twin',
    field: 'spec.path',
    code: 'conflict',
    message: /File\/good/,
  },
  'one fragment twice': {
    body: json(GOOD, GOOD),
    fragment: 'File/good',
    field: 'apply[1]',
    code: 'duplicate',
    message: /apply\[0\]/,
  },
  'a path that leaves the root': {
    body: json(withSpec({ path: '/etc/../../passwd' })),
    fragment: 'File/good',
    field: 'spec.path',
    code: 'bad-path',
    message: /\.\./,
  },
  'a name with spaces': {
    body: json(named('my file')),
    fragment: 'apply[0]',
    field: 'metadata.name',
    code: 'bad-name',
    message: /DNS subdomain/,
  },
  'a name that ends with a dot': {
    body: json(named('my.file.')),
    fragment: 'apply[0]',
    field: 'metadata.name',
    code: 'bad-name',
    message: /DNS subdomain/,
  },
  'a name of 300 characters': {
    body: json(named('n'.repeat(300))),
    fragment: 'apply[0]',
    field: 'metadata.name',
    code: 'bad-name',
    message: /63/,
  },
  'an unknown key in a template': {
    body: json(withSpec({ content: '{{ node.labels.nowhere }}' })),
    fragment: 'File/good',
    field: 'spec.content',
    code: 'unknown-template-key',
    message: /nowhere/,
  },
  'deep nesting': {
    body: json(withSpec({ content: 'HERE' })).replace('"HERE"', nested(1_000)),
    fragment: '',
    field: 'apply[0].spec.content',
    code: 'too-deep',
    message: /deeper than 64/,
  },
  'nesting that would overflow the stack': {
    body: `{"apply": ${nested(300_000)}}`,
    fragment: '',
    field: 'apply',
    code: 'too-deep',
    message: /deeper than 64/,
  },
};

describe('bad input', () => {
  const stage = fleetFixture({ sizes: [2, 1, 2], env: { SLUICE_LOG: 'warn' } });

  test.each(Object.entries(CASES))(
    '%s is refused with its place',
    async (_what, { body, fragment, field, code, message }) => {
      const { fleet } = stage;
      const change = await fleet.publish(body);
      const view = await fleet.ended(change);
      expect(view).toMatchObject({ phase: 'rejected' });
      const facts = (await fleet.events(`config.rejected.${change}`)).map(
        (event) => event.body as { readonly reasons: readonly Reason[] },
      );
      expect(facts).toHaveLength(1);
      const reasons = facts.flatMap((fact) => fact.reasons);
      expect(reasons).toContainEqual(
        expect.objectContaining({ fragment, code, message: expect.stringMatching(message) as string }),
      );
      const found = reasons.find((reason) => reason.fragment === fragment && reason.code === code);
      expect(found?.field.replace(/(\[0\]){5,}.*$/, '')).toBe(field);
      expect(view.reasons).toEqual(reasons);
    },
  );

  test.each(['Me', 'a.b', '-me', 'm_e'])('a source that is not a label (%s) is refused by name', async (source) => {
    const { fleet } = stage;
    const change = await fleet.client.publishChange(source, json(GOOD));
    expect(await fleet.ended(change)).toMatchObject({
      phase: 'rejected',
      reasons: [{ code: 'bad-source', message: expect.stringContaining(`"${source}"`) as string }],
    });
  });

  test('a document of 2 MB is refused before it is published, and the server stores nothing', async () => {
    const { fleet } = stage;
    const before = (await fleet.client.list('changes')).size;
    const path = join(fleet.data, 'large.yaml');
    writeFileSync(path, JSON.stringify(withSpec({ content: 'x'.repeat(2_000_000) })));
    const { code, stderr } = await fleet.cli('apply', '-f', path);
    expect(code).toBe(3);
    expect(stderr).toMatch(/1954 KiB; the limit is 900 KiB/);
    const planned = await fleet.cli('plan', '-f', path);
    expect({ code: planned.code, words: planned.stdout + planned.stderr }).toEqual({
      code: 3,
      words: expect.stringMatching(/1954 KiB; the limit is 900 KiB/) as string,
    });
    expect((await fleet.client.list('changes')).size).toBe(before);
  });

  testWith(['nats'], 'a document of 2 MB that is published past the CLI is refused by the nats CLI', async () => {
    const { fleet } = stage;
    const before = (await fleet.client.list('changes')).size;
    const nats = await NatsCli.of(fleet);
    const piped = await nats.run('pub', 'config.desired.me', '{{ Random 2000000 2000000 }}');
    expect(piped.code).not.toBe(0);
    expect(piped.stdout + piped.stderr).toMatch(/maximum payload exceeded/);
    await nats.close();
    expect((await fleet.client.list('changes')).size).toBe(before);
  });

  test('a change of more than 900 KiB that the server stores is refused by the merger', async () => {
    const { fleet } = stage;
    const change = await fleet.publish(json(withSpec({ content: 'x'.repeat(930_000) })));
    expect(await fleet.ended(change)).toMatchObject({
      phase: 'rejected',
      reasons: [{ code: 'too-large', message: expect.stringMatching(/921600/) as string }],
    });
  });

  testWith(
    ['nats'],
    'reports and heartbeats that nobody understands are set aside, and doctor lists them',
    async () => {
      const { fleet } = stage;
      const nats = await NatsCli.of(fleet);
      for (const [subject, body] of [
        ['node.applied.x', 'not JSON'],
        ['node.announced.x', '{"node": 7}'],
        ['node.failed.x', '{"node": "another", "v": 1}'],
        ['alive.x', '[]'],
      ] as const) {
        expect((await nats.run('pub', subject, body)).code).toBe(0);
      }
      await until(async () => (await fleet.client.inspect()).poison.length >= 4, 'all four are set aside');
      const poison = (await fleet.client.inspect()).poison.map(({ stream, subject }) => `${stream} ${subject}`);
      expect([...new Set(poison)].sort()).toEqual([
        'ALIVE alive.x',
        'REPORTS node.announced.x',
        'REPORTS node.applied.x',
        'REPORTS node.failed.x',
      ]);
      const { code, stdout } = await fleet.cli('doctor', '-o', 'json');
      expect(code).toBe(1);
      const { ok, checks } = JSON.parse(stdout) as {
        readonly ok: boolean;
        readonly checks: readonly { readonly state: string; readonly detail: string; readonly todo: string }[];
      };
      expect(ok).toBe(false);
      const bad = checks.filter(({ state }) => state === 'bad');
      expect(bad.map(({ detail }) => /^\S+/.exec(detail)?.[0]).sort()).toEqual([
        'alive.x',
        'node.announced.x',
        'node.applied.x',
        'node.failed.x',
      ]);
      expect(await fleet.client.get('nodes', 'x')).toBeUndefined();
      await nats.close();
    },
  );

  test('after all of this, every service is running, and a good change is committed', async () => {
    const { fleet } = stage;
    expect(await fleet.ended(await fleet.apply(GOOD))).toMatchObject({ phase: 'committed', nodes: 5 });
    expect(fleet.files()).toEqual(fleet.filesWith(() => ({ '/etc/good.conf': 'good\n' })));
    // A busy service may answer later than an inspection waits.
    const services = await until(async () => {
      const { services: found } = await fleet.client.inspect();
      return found.length === 5 ? found : undefined;
    }, 'every service answers');
    expect(services.map(({ copies, halted }) => [copies, halted])).toEqual(services.map(() => [1, '']));
    expect(
      fleet.processes.isRunning('merger') &&
        fleet.processes.isRunning('validator') &&
        fleet.processes.isRunning('scheduler'),
    ).toBe(true);
    const facts = (await fleet.events('config.rejected.*')).length;
    expect(facts).toBe(Object.keys(CASES).length + 4 + 1);
    expect(fleet.witness.exceeded).toEqual([]);
  });
});
