import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findKubeBinaries } from '#libs/api-servers';
import { whyNoKube } from '#libs/testing';
import { isAsShown, Reader, stepsOf, update, type Step } from './document.js';

const ROOT = join(__dirname, '../..');

/** Runs every command of a page, and compares the output. If several nodes change, any of them may fail first. */
async function follow(name: string, nodesMayDiffer: boolean): Promise<void> {
  const path = join(ROOT, name);
  const steps = stepsOf(readFileSync(path, 'utf8'));
  expect(steps.length).toBeGreaterThan(0);
  const reader = new Reader();
  const differing: (Step & { readonly output: string })[] = [];
  try {
    await reader.settle();
    for (const step of steps) {
      const output = await reader.run(step);
      if (!isAsShown(step.shown, output, nodesMayDiffer)) differing.push({ ...step, output });
    }
  } finally {
    await reader.leave();
  }
  if (process.env['SLUICE_UPDATE_DOCS'] === '1') return update(path, differing);
  for (const { command, shown, output } of differing) expect(`${command}\n${output}`).toBe(`${command}\n${shown}`);
}

test('the tutorial works as written', () => follow('docs/tutorial/README.md', false));

test('the output of the demo matches README', () => follow('README.md', true));

test('the output of the demo of network functions matches their guide', () =>
  follow('docs/guides/network-functions.md', true));

const why = whyNoKube();
(why === undefined ? describe : describe.skip)(`with API servers${why === undefined ? '' : ` (${why})`}`, () => {
  beforeAll(() => findKubeBinaries(), 20 * 60_000);
  test('the output of the demo of clusters matches their guide', () => follow('docs/guides/clusters.md', true));
});

test.each([
  ['a line that differs', 'a\nb\n', 'a\nc\n', false],
  ['a missing line', 'a\nb\n', 'a\n', false],
  ['an extra line', 'a\n', 'a\nb\n', false],
  ['other times, hashes and columns', 'x  3s  0123456789ab\n', 'x   12s   ba9876543210\n', true],
  ['left-out lines', 'a\n…\nd\n', 'a\nb\nc\nd\n', true],
  ['the left-out rest of a line', 'a b …\n', 'a b c\n', true],
  ['a line that starts differently', 'a b …\n', 'a c\n', false],
  ['a line that differs after left-out lines', 'a\n…\nd\n', 'a\nb\nc\n', false],
])('a page is compared with its output: %s', (_what, shown, output, same) => {
  expect(isAsShown(shown, output)).toBe(same);
});
