import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isAsShown, Reader, stepsOf, update, type Step } from './document.js';

const ROOT = join(__dirname, '../..');

/** Runs all that a page tells its reader to run, and compares; which node fails first is open where several change. */
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

test('the tutorial works as it is written', () => follow('docs/tutorial/README.md', false), 300_000);

test('the demo says what README shows', () => follow('README.md', true), 120_000);

test.each([
  ['a line that differs', 'a\nb\n', 'a\nc\n', false],
  ['a line less', 'a\nb\n', 'a\n', false],
  ['a line more', 'a\n', 'a\nb\n', false],
  ['other times, hashes and columns', 'x  3s  0123456789ab\n', 'x   12s   ba9876543210\n', true],
  ['lines that are left out', 'a\n…\nd\n', 'a\nb\nc\nd\n', true],
  ['the rest of a line that is left out', 'a b …\n', 'a b c\n', true],
  ['a line that begins in another way', 'a b …\n', 'a c\n', false],
  ['a line behind those left out that differs', 'a\n…\nd\n', 'a\nb\nc\n', false],
])('a page is compared with what it shows: %s', (_what, shown, output, same) => {
  expect(isAsShown(shown, output)).toBe(same);
});
