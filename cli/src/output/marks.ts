import type { FailingProbe } from '#libs/contracts';
import type { Colours } from './io.js';
import type { ChangeStatus, Tone } from '../change/change-status.js';

const TONE_MARKS: Readonly<Record<Tone, string>> = { good: '✔', bad: '✖', busy: '◌', held: '⏸', calm: '·' };
const TONE_COLOURS = { good: 'green', bad: 'red', busy: 'cyan', held: 'yellow' } as const;
/** The states of a node in a rollout, worst first. */
const STATE_TONES: Readonly<Record<string, Tone>> = {
  invalid: 'bad',
  failed: 'bad',
  degraded: 'bad',
  escalated: 'held',
  'partly-rolled-back': 'held',
  unknown: 'bad',
  deferred: 'held',
  draining: 'busy',
  applying: 'busy',
  settled: 'busy',
  uncordoning: 'busy',
  pending: 'calm',
  applied: 'good',
  'rolled-back': 'good',
  untouched: 'good',
};
const RANKS = Object.keys(STATE_TONES);

/** The state of a node in a rollout, as a tone. */
export const toneOfState = (state: string): Tone => STATE_TONES[state] ?? 'calm';
/** The lower, the worse. */
export const rankOfState = (state: string): number => RANKS.indexOf(state);
export const mark = (tone: Tone, colours: Colours): string => paint(tone, TONE_MARKS[tone], colours);
export const statusText = (status: ChangeStatus, colours: Colours): string =>
  `${mark(status.tone, colours)} ${paint(status.tone, status.isHeldBack === true ? `${status.word},paused` : status.word, colours)}`;

/** Why a node is unhealthy. */
export const failingText = (probes: readonly FailingProbe[]): string =>
  probes.map(({ probe, reason }) => `${probe}: ${reason.split('\n')[0] ?? ''}`).join('; ');

export const paint = (tone: Tone, text: string, colours: Colours): string =>
  tone === 'calm' ? text : colours[TONE_COLOURS[tone]](text);
