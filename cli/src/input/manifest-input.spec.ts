import { cli } from '../fakes.fixture.js';

const APPLY = ['apply', '-f', '-'];

describe('a manifest with errors', () => {
  test('shows the line of each error with a mark, and what a misspelt word may mean', async () => {
    const text = `apiVersion: sluice.dev/v1alpha1
kind: File
metadata: { name: motd }
spec:
  nodeSelector: {}
  path: etc/motd
  contents: hello
`;
    const { exit, err } = await cli(APPLY, {}, {}, text);
    expect(exit).toBe(3);
    expect(err.split('\n')).toEqual([
      'rejected; nothing was published:',
      expect.stringMatching(/^ {2}✖ File\/motd spec\.contents: unknown field; did you mean content\?.*\(stdin:7:3\)$/),
      '      7 |   contents: hello',
      '        |   ^^^^^^^^',
      expect.stringMatching(/^ {2}✖ File\/motd spec\.content: is required \(stdin:4:1\)$/),
      '      4 | spec:',
      '        | ^^^^',
      '  ✖ File/motd spec.path: must be absolute (stdin:6:9)',
      '      6 |   path: etc/motd',
      '        |         ^^^^^^^^',
      '',
    ]);
    const json = await cli([...APPLY, '-o', 'json'], {}, {}, text.replace('kind: File', 'kind: Flie'));
    expect(JSON.parse(json.out)).toMatchObject({
      rejected: [
        {
          code: 'unknown-kind',
          message: expect.stringContaining('did you mean File? Known kinds: File, ') as string,
          place: { file: 'stdin', line: 2, column: 7, excerpt: ['2 | kind: Flie', '  |       ^^^^'] },
        },
      ],
    });
  });

  test.each([
    ['a: 1\na: 2\n', '2 | a: 2'],
    [`a: ${'x'.repeat(200)}: y\n`, `1 | a: ${'x'.repeat(97)}`],
    ['kind: Fi\u001b[31mle\n', '1 | kind: Fi [31mle'],
  ])('shows the line of text that is no YAML or hard to show: %j', async (text, line) => {
    const { err } = await cli(APPLY, {}, {}, text);
    expect(err).toContain(`\n      ${line}\n        | `);
  });
});

test.each([
  [['get', 'nods'], 'did you mean nodes? Known resources: nodes, pools'],
  [['aply'], 'Did you mean apply?'],
  [['status', '--wach'], 'Did you mean --watch?'],
  [['delete', 'Fil', 'motd'], 'did you mean File? Known kinds: '],
])('%j is answered with what it may mean', async (argv, words) => {
  const { exit, err } = await cli(argv, {});
  expect([exit, err]).toEqual([2, expect.stringContaining(words)]);
});
