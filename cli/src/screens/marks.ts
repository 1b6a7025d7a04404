import type { Colours } from '../io.js';
import type { Standing, Tone } from '../standing.js';

const TONE_MARKS: Readonly<Record<Tone, string>> = { good: '✔', bad: '✖', busy: '◌', held: '⏸', calm: '·' };
const STATE_TONES: Readonly<Record<string, Tone>> = {
  applied: 'good',
  back: 'good',
  invalid: 'bad',
  failed: 'bad',
  escalated: 'held',
  unknown: 'bad',
  owed: 'held',
  pending: 'calm',
  draining: 'busy',
  ready: 'busy',
  settled: 'busy',
  uncordoning: 'busy',
};

/** The state of a node in a rollout, as a tone. */
export const toneOfState = (state: string): Tone => STATE_TONES[state] ?? 'calm';
export const mark = (tone: Tone, colours: Colours): string => paint(tone, TONE_MARKS[tone], colours);
export const standingText = (standing: Standing, colours: Colours): string =>
  `${mark(standing.tone, colours)} ${paint(standing.tone, standing.word, colours)}`;

export function paint(tone: Tone, text: string, colours: Colours): string {
  switch (tone) {
    case 'good':
      return colours.green(text);
    case 'bad':
      return colours.red(text);
    case 'busy':
      return colours.cyan(text);
    case 'held':
      return colours.yellow(text);
    case 'calm':
      return text;
  }
}
