import { knownWords, nearest } from './nearest.js';

const FIELDS = ['path', 'content', 'mode', 'nodeSelector', 'key'];

test.each([
  ['contents', 'content'],
  ['Content', 'content'],
  ['nodeselector', 'nodeSelector'],
  ['nodeSelecter', 'nodeSelector'],
  ['pth', 'path'],
  ['ky', 'key'],
  ['owner', undefined],
  ['x', undefined],
  ['', undefined],
])('suggests for %j: %j', (word, meant) => {
  expect(nearest(word, FIELDS)).toBe(meant);
});

test('a message names the suggestion, then all words', () => {
  expect(knownWords('pat', 'fields', ['path', 'mode'])).toBe('did you mean path? Known fields: path, mode');
  expect(knownWords('colour', 'fields', ['path', 'mode'])).toBe('known fields: path, mode');
  expect(knownWords('p'.repeat(100_000), 'fields', ['p'.repeat(99_999)])).toMatch(/^known fields: p/);
});
