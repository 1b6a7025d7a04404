const DEFAULT_SECONDS = 35;

/** SLUICE_SILENT_SECONDS: how long a node may be unheard before it is silent, in milliseconds. Throws for what is no number. */
export function silentAfterMs(environment: Readonly<Record<string, string | undefined>>): number {
  const text = environment['SLUICE_SILENT_SECONDS'];
  const seconds = text === undefined || text === '' ? DEFAULT_SECONDS : Number(text);
  if (!Number.isFinite(seconds) || seconds <= 0) throw new Error(`SLUICE_SILENT_SECONDS is ${JSON.stringify(text)}, and must be a number above 0`);
  return seconds * 1_000;
}
