import type { Check } from '../checkup.js';
import type { Colours } from '../io.js';
import { mark } from './marks.js';
import { pad, width } from './table.js';

/** What was looked at, what is wrong with it, and what to do. */
export function checkupScreen(checks: readonly Check[], colours: Colours): string {
  const column = Math.max(...checks.map(({ what }) => width(what)));
  const tones = { good: 'good', bad: 'bad', note: 'calm' } as const;
  const lines = checks.flatMap(({ what, state, detail, todo }) => [
    `${mark(tones[state], colours)} ${pad(what, column)}  ${detail}`,
    ...(todo === '' ? [] : [`  ${' '.repeat(column)}  → ${todo}`]),
  ]);
  const wrong = checks.filter(({ state }) => state === 'bad').length;
  return [
    ...lines,
    '',
    wrong === 0
      ? colours.green('Nothing is wrong.')
      : colours.red(`${wrong} ${wrong === 1 ? 'thing is' : 'things are'} wrong.`),
  ].join('\n');
}
