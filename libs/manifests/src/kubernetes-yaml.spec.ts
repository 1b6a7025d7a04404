import { KUBERNETES_YAML } from './kubernetes-yaml.js';
import { readManifests, type ManifestFile } from './manifest-file.js';

const read = (text: string): ManifestFile => readManifests(text, KUBERNETES_YAML);

describe('YAML as Kubernetes reads it', () => {
  test.each<[string, unknown]>([
    ['0644', 420],
    ['0o644', 420],
    ['-0644', -420],
    ['01777', 1023],
    ['420', 420],
    ['0x1a4', 420],
    ['0b11', 3],
    ['089', 89],
    ['1_000', 1000],
    ['"0644"', '0644'],
    ['yes', true],
    ['Off', false],
    ['n', false],
    ['"on"', 'on'],
    ['~', null],
    ['64512:10', '64512:10'],
    ['02:00:00:00:00:01', '02:00:00:00:00:01'],
    ['1:30', '1:30'],
    ['1:30.5', '1:30.5'],
    ['2026-01-01', '2026-01-01'],
  ])('reads %s as %p', (text, value) => {
    expect(read(`a: ${text}\n`)).toMatchObject({ manifests: [{ a: value }], problems: [] });
    expect(read(`%YAML 1.2\n---\na: ${text}\n`)).toMatchObject({ manifests: [{ a: value }], problems: [] });
  });

  test.each([
    ['0644', '0644 is 644 in YAML 1.2, and 420 for kubectl'],
    ['yes', 'yes is "yes" in YAML 1.2, and true for kubectl'],
    ['1_000', '1_000 is "1_000" in YAML 1.2, and 1000 for kubectl'],
  ])("refuses %s in Sluice's own manifests, because kubectl reads another value", (text, words) => {
    const message = expect.stringContaining(`${words}: put it in quotes if it is a text, or write `) as string;
    const { manifests, problems } = readManifests(`a: "${text}"\nb: [1, ${text}]\n`);
    expect([manifests, problems]).toEqual([[], [{ line: 2, column: 8, length: text.length, message }]]);
    expect(readManifests(`a: "${text}"\nb: |\n  ${text}\n`).problems).toEqual([]);
  });

  test("refuses words and merge keys in Sluice's own manifests as keys, too", () => {
    const text = 'on: 1\nb: {c: &d {e: 1}}\nf: {<<: *d}\ng: {"<<": 1, "on": 2}\n';
    expect(readManifests(text).problems.map(({ line, column, message }) => `${line}:${column} ${message}`)).toEqual([
      expect.stringMatching(/^1:1 on is "on" in YAML 1.2, and true for kubectl: put it in quotes/),
      '3:5 merge keys are read by kubectl, and not by Sluice: write the fields here',
    ]);
  });

  test.each([
    '10',
    '0',
    '-1',
    '1.10',
    '1e3',
    '0x1a4',
    '0o644',
    '2026-01-01',
    '12:30',
    '10.0.0.1',
    '1.2.3-rc.1',
    '08:00:27:00:00:01',
  ])("reads %s in Sluice's own manifests as kubectl does", (text) => {
    expect(readManifests(`a: ${text}\n`).manifests).toEqual(read(`a: ${text}\n`).manifests);
    expect(readManifests(`a: ${text}\n`).problems).toEqual([]);
  });

  test('merges keys, and reads JSON unchanged', () => {
    expect(read('a: &a {p: 1, q: 2}\nb: {<<: *a, q: 3}\non: 1\n').manifests).toEqual([
      { a: { p: 1, q: 2 }, b: { p: 1, q: 3 }, true: 1 },
    ]);
    expect(read('{"a": "yes", "b": [420, 1e3, true, null], "<<": {"c": "0644"}}').manifests).toEqual([
      { a: 'yes', b: [420, 1000, true, null], '<<': { c: '0644' } },
    ]);
  });

  test.each([
    [
      'merge keys that expand exponentially',
      [
        'l0: &l0 {k: 1}',
        ...Array.from({ length: 40 }, (_, i) => `l${i + 1}: &l${i + 1} {x: {<<: *l${i}}, y: {<<: *l${i}}}`),
      ].join('\n'),
      '1:1: its aliases and merge keys expand to more than can be read',
    ],
    [
      'aliases that expand exponentially',
      [
        'l0: &l0 [a]',
        ...Array.from(
          { length: 9 },
          (_, i) => `l${i + 1}: &l${i + 1} [${Array.from({ length: 9 }, () => `*l${i}`).join(', ')}]`,
        ),
      ].join('\n'),
      '1:1: its aliases and merge keys expand to more than can be read',
    ],
    ['a mapping that merges itself', 'a: &a {<<: *a}\n', '1:1: the anchor a contains itself'],
    ['a mapping that contains itself', 'a: &a {b: [*a]}\n', '1:1: the anchor a contains itself'],
    ['bytes', 'a: !!binary aGk=\n', '1:4: Unresolved tag: tag:yaml.org,2002:binary'],
  ])('refuses %s', (_name, text, problem) => {
    const { manifests, problems } = read(text);
    expect(manifests).toEqual([]);
    expect(problems.map(({ line, column, message }) => `${line}:${column}: ${message}`)).toEqual([problem]);
  });
});
