const DEFAULT_MS = 1_000;

/** SLUICE_DEBOUNCE_MS: objects that are applied within it of each other go into one change. Throws for what is no number. */
export function debounceFrom(environment: Readonly<Record<string, string | undefined>>): number {
  const text = environment['SLUICE_DEBOUNCE_MS'] ?? '';
  if (text === '') return DEFAULT_MS;
  if (!/^\d{1,6}$/.test(text))
    throw new Error(`SLUICE_DEBOUNCE_MS is ${JSON.stringify(text)}, and must be a number of milliseconds`);
  return Number(text);
}
