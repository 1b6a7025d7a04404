import { createHash } from 'node:crypto';
import fc from 'fast-check';
import type { Fragment } from '#libs/contracts';
import { isUnicode } from '#libs/manifests';
import { canonicalJson, compileFragments, configHash, emptyHash, renderNode, type RenderedConfig } from '../index.js';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const file = (name: string, content: string, more: object = {}, nodeSelector: object = {}): Fragment =>
  ({ kind: 'File', name, labels: {}, spec: { nodeSelector, path: `/etc/${name}`, content, ...more } }) as Fragment;
const render = (fragments: readonly Fragment[], labels: Record<string, string> = {}, name = 'w-1'): RenderedConfig =>
  renderNode(compileFragments(fragments).forNode(labels), { name, labels }, sha256);
const contentOf = (rendered: RenderedConfig): unknown => rendered.config.fragments[0]?.spec['content'];

describe('renderNode', () => {
  test('the empty config has its own hash', () => {
    expect(render([]).hash).toBe(emptyHash(sha256));
    expect(emptyHash(sha256)).toBe(sha256('{"fragments":[]}'));
    expect(configHash({ fragments: [] }, sha256)).toBe(emptyHash(sha256));
  });

  test('entries are sorted by kind, then name, and have no selector', () => {
    const { config } = render([
      file('b', ''),
      file('a', ''),
      { kind: 'Directory', name: 'z', labels: {}, spec: { nodeSelector: {}, path: '/z' } },
    ]);
    expect(config.fragments.map(({ kind, name }) => `${kind}/${name}`)).toEqual(['Directory/z', 'File/a', 'File/b']);
    expect(config.fragments[0]).toEqual({ kind: 'Directory', name: 'z', spec: { path: '/z' } });
  });

  test('policies, and fragments that do not select the node, are left out', () => {
    const pool: Fragment = { kind: 'Pool', name: 'p', labels: {}, spec: { nodeSelector: {} } };
    expect(render([pool, file('a', '', {}, { matchLabels: { role: 'edge' } })], { role: 'core' }).config).toEqual({
      fragments: [],
    });
  });

  test.each([
    ['{{ node.name }}', 'w-1'],
    ['{{node.name}}!', 'w-1!'],
    ['a {{ node.labels.zone }} b {{ node.name }}', 'a z1 b w-1'],
    ['{{ node.labels.topology.kubernetes.io/zone }}', 'dc1'],
    ['{{{{ node.name }}', '{{ node.name }}'],
    ['{{{{{{ node.name }}', '{{w-1'],
    ['{{ node.labels.raw }}', '{{ node.name }}'],
    ['}} {', '}} {'],
  ])('%s becomes %s', (template, text) => {
    const labels = { zone: 'z1', 'topology.kubernetes.io/zone': 'dc1', raw: '{{ node.name }}' };
    const rendered = render([file('a', template)], labels);
    expect(rendered.reasons).toEqual([]);
    expect(contentOf(rendered)).toBe(text);
  });

  test('templates are filled in at any depth, in values only', () => {
    const { config } = render([file('a', '', { deep: [{ 'k{{ node.name }}': ['{{ node.name }}', 1] }] })]);
    expect(config.fragments[0]?.spec['deep']).toEqual([{ 'k{{ node.name }}': ['w-1', 1] }]);
  });

  test.each([
    ['template: false', { template: false }, '{{ node.name }} {{{{ {{ x'],
    ['an encoding', { encoding: 'base64' }, 'e3s='],
  ])(
    'the content of a file with %s stays unchanged, but templates in its path are filled in',
    (_name, more, content) => {
      const rendered = render([file('a', content, { ...more, path: '/etc/{{ node.name }}' })]);
      expect(rendered.reasons).toEqual([]);
      expect(rendered.config.fragments[0]?.spec).toEqual({ ...more, path: '/etc/w-1', content });
    },
  );

  test('an unknown label is a reason that names the fragment, the field, the node and its labels', () => {
    expect(render([file('a', 'x {{ node.labels.zone }}')], { role: 'edge', rack: '4' }).reasons).toEqual([
      {
        fragment: 'File/a',
        field: 'spec.content',
        code: 'unknown-template-key',
        nodes: ['w-1'],
        message: '{{ node.labels.zone }}: the node has no such label; it has rack, role',
      },
    ]);
  });

  test.each(['constructor', '__proto__', 'toString'])('the label %s does not exist unless it is set', (key) => {
    expect(render([file('a', `{{ node.labels.${key} }}`)], {}).reasons).toHaveLength(1);
  });

  test.each([
    ['{{ node.name', 'bad-template'],
    ['{{ foo }}', 'bad-template'],
    ['{{}}', 'bad-template'],
    ['{{ node.labels.a b }}', 'bad-template'],
    ['{{ node.labels. }}', 'unknown-template-key'],
    ['{{ node.zone }}', 'unknown-template-key'],
    ['{{ node.labels }}', 'unknown-template-key'],
  ])('%s is refused as %s', (template, code) => {
    expect(render([file('a', template)]).reasons).toMatchObject([
      { fragment: 'File/a', field: 'spec.content', code, nodes: ['w-1'] },
    ]);
  });

  test('the recipe depends on the fragments, the hash on the rendered config', () => {
    const fragments = [file('a', '{{ node.name }}')];
    const [one, two] = [render(fragments, {}, 'w-1'), render(fragments, {}, 'w-2')];
    expect(one.recipe).toBe(two.recipe);
    expect(one.recipe).toBe(
      sha256('[{"kind":"File","name":"a","spec":{"content":"{{ node.name }}","path":"/etc/a"}}]'),
    );
    expect(one.hash).not.toBe(two.hash);
    expect(render([file('a', 'w-1')]).hash).toBe(one.hash);
  });

  test('nodes with the same fragments share one result, and another selector changes neither hash nor recipe', () => {
    const index = compileFragments([file('a', 'x', {}, { matchExpressions: [{ key: 'role', operator: 'Exists' }] })]);
    const [one, two] = ['1', '2'].map((role) =>
      renderNode(index.forNode({ role }), { name: `w-${role}`, labels: { role } }, sha256),
    );
    expect(one).toBe(two);
    expect(one?.recipe).toBe(render([file('a', 'x')]).recipe);
  });

  test('the hash is the sha256 of the RFC 8785 form of the parsed text, whatever is rendered', () => {
    const text = fc
      .oneof(fc.string({ unit: 'binary' }), fc.constantFrom('{{ node.name }}', '{{ node.labels.zone }}{{{{'))
      .map((value) => (isUnicode(value) ? value.replace(/\{\{(?! node|\{\{)/g, '{') : ''));
    const fragment = fc.record({ name: fc.stringMatching(/^[a-z]{1,5}$/), content: text, mode: fc.jsonValue() });
    fc.assert(
      fc.property(
        fc.uniqueArray(fragment, { selector: ({ name }) => name, maxLength: 8 }),
        fc.string({ unit: 'grapheme' }),
        (written, zone) => {
          const rendered = render(
            written.map(({ name, content, mode }) =>
              file(name, content, { mode: JSON.parse(canonicalJson(mode)) as unknown }),
            ),
            { zone },
          );
          fc.pre(rendered.reasons.length === 0);
          expect(rendered.hash).toBe(sha256(canonicalJson(JSON.parse(rendered.text))));
          expect(JSON.parse(rendered.text)).toEqual(JSON.parse(JSON.stringify(rendered.config)));
          expect(configHash(rendered.config, sha256)).toBe(rendered.hash);
        },
      ),
    );
  });

  test('10,000 nodes with 200 fragments are rendered in seconds', () => {
    const selectors = [
      {},
      { matchLabels: { role: 'edge' } },
      { matchExpressions: [{ key: 'zone', operator: 'In', values: ['a', 'b'] }] },
    ];
    const fragments = Array.from({ length: 200 }, (_, i) =>
      file(`f${i}`, i % 100 === 0 ? '{{ node.name }}' : `content ${i}`.repeat(20), {}, selectors[i % 3]),
    );
    const index = compileFragments(fragments);
    const before = process.cpuUsage();
    const hashes = new Set<string>();
    for (let i = 0; i < 10_000; i++) {
      const labels = { role: i % 2 === 0 ? 'edge' : 'core', zone: 'abc'.charAt(i % 3) };
      hashes.add(renderNode(index.forNode(labels), { name: `w-${i}`, labels }, sha256).hash);
    }
    expect(hashes.size).toBe(10_000);
    // About 2 s where it was written, mostly sha256. The limit only catches work of a higher order. It is CPU time, so
    // that a busy machine makes no difference.
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(20_000);
  });
});
