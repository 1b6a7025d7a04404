import { checkManifest } from '../index.js';
import { manifestOf } from '../manifest.fixture.js';
import { probePattern, type ProbePattern } from './probe-pattern.js';

const reasonsOf = (matches: string) => {
  const checked = checkManifest(manifestOf('Probe', { file: { path: '/a', matches } }), 'place');
  return checked.ok ? [] : checked.reasons;
};

test.each([
  ['^ok$', true],
  ['\\('.repeat(100), true],
  ['(a)'.repeat(100), true],
  ['('.repeat(20) + ')'.repeat(20), true],
  ['(', false],
  ['('.repeat(21) + ')'.repeat(21), false],
  ['a'.repeat(1_001), false],
])('the pattern %j can be used: %s', (text, usable) => {
  expect(typeof probePattern(text) !== 'string').toBe(usable);
});

test.each([
  ['^ready$', 'starting\nready\n', true],
  ['^ready$', 'not ready\n', false],
  ['(?i)^READY$', 'ready', true],
  ['ready.*', 'is ready now', true],
])('the pattern %j in %j: %s', (pattern, text, found) => {
  expect(patternOf(pattern).test(text)).toBe(found);
});

test('a pattern that would make a backtracking engine hang takes no longer than any other', () => {
  expect(patternOf('^(a+)+$').test(`${'a'.repeat(100_000)}!`)).toBe(false);
  expect(patternOf('(x+x+)+y').test('x'.repeat(100_000))).toBe(false);
});

test.each([
  ['(a)\\1', 'it uses a backreference, which RE2 does not have: write out what must be repeated'],
  ['(?<q>["\'])\\k<q>', 'it uses a backreference, which RE2 does not have: write out what must be repeated'],
  ...['(?=a)', '(?!a)', '(?<=a)', '(?<!a)'].map((pattern) => [
    pattern,
    'it uses lookahead or lookbehind, which RE2 does not have: match the text around it too, or use two probes',
  ]),
  ['(', 'missing closing ): `(`'],
  ['a{1001}', 'invalid repeat count: `{1001}`'],
  ['([ab]{100}){10}|([cd]{100}){10}|([ef]{100}){10}', 'its repeats make it too large: use smaller numbers in {}'],
  ['('.repeat(21) + ')'.repeat(21), 'its groups are nested more than 20 deep'],
  ['a'.repeat(1_001), 'it is longer than 1000 characters'],
])('the pattern %j is refused, and the message says what to do', (pattern, why) => {
  expect(probePattern(pattern)).toBe(why);
  expect(reasonsOf(pattern)).toMatchObject([{ field: 'spec.file.matches', code: 'bad-pattern' }]);
});

test('a refusal names the pattern', () => {
  expect(reasonsOf('(?=a)b')[0]?.message).toBe(
    'must be a regular expression in RE2 syntax, and "(?=a)b" is not: it uses lookahead or lookbehind, which RE2 does not have: match the text around it too, or use two probes',
  );
});

function patternOf(text: string): ProbePattern {
  const pattern = probePattern(text);
  if (typeof pattern === 'string') throw new Error(pattern);
  return pattern;
}
