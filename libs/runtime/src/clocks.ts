/** Monotonic milliseconds: for deadlines and distances, never for showing. */
export const monotonicMs = (): number => performance.now();

/** The time of day as facts carry it: RFC 3339 in UTC with milliseconds. */
export const wallTime = (): string => new Date().toISOString();
