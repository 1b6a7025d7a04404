import { DEFAULT_PER_SECOND } from '../core/index.js';

type Environment = Readonly<Record<string, string | undefined>>;

const DEFAULT_SILENT_SECONDS = 35;

/** SLUICE_SILENT_SECONDS: how long a node may be unheard before it is silent, in milliseconds. Throws for what is no number. */
export function silentAfterMs(environment: Environment): number {
  const text = environment['SLUICE_SILENT_SECONDS'];
  const seconds = text === undefined || text === '' ? DEFAULT_SILENT_SECONDS : Number(text);
  if (!Number.isFinite(seconds) || seconds <= 0)
    throw new Error(`SLUICE_SILENT_SECONDS is ${JSON.stringify(text)}, and must be a number above 0`);
  return seconds * 1_000;
}

/** SLUICE_HEARTBEATS_PER_SECOND: how many of them the whole fleet shall send, about; 0 for any number. Throws for what is no number. */
export function heartbeatsPerSecond(environment: Environment): number {
  const text = environment['SLUICE_HEARTBEATS_PER_SECOND'];
  const count = text === undefined || text === '' ? DEFAULT_PER_SECOND : Number(text);
  if (!Number.isFinite(count) || count < 0)
    throw new Error(`SLUICE_HEARTBEATS_PER_SECOND is ${JSON.stringify(text)}, and must be a number from 0`);
  return count;
}
