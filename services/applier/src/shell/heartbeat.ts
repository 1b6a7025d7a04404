const DEFAULT_SECONDS = 10;

/** How often a node says that it is alive, from `SLUICE_ALIVE_SECONDS`; the inventory's patience must be longer. Throws when that is no number above 0. */
export function heartbeatMs(environment: Readonly<Record<string, string | undefined>>): number {
  const text = environment['SLUICE_ALIVE_SECONDS'];
  const seconds = text === undefined || text === '' ? DEFAULT_SECONDS : Number(text);
  if (!Number.isFinite(seconds) || seconds <= 0)
    throw new Error(`SLUICE_ALIVE_SECONDS is ${JSON.stringify(text)}, and must be a number above 0`);
  return seconds * 1_000;
}
