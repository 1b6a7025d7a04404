import type { Config, ConfigEntry, FailingProbe } from '#libs/contracts';
import { durationMs } from '#libs/manifests/lean';
import { probesOf } from './plan.js';
import type { ProbeResult } from './ports.js';

/** What this run knows of the probes of the config in force. */
export interface Health {
  /** Counts the changes of the node. What was found before a change says nothing about the node after it. */
  readonly round: number;
  /** Undefined until the config was read. */
  readonly probes: readonly ConfigEntry[] | undefined;
  /** When each probe runs next, by name; none while it runs. */
  readonly dueMs: ReadonlyMap<string, number>;
  readonly results: ReadonlyMap<string, ProbeResult>;
  /** Probes have run since the last report of failing probes, or it is known that there are none. */
  readonly isNew: boolean;
  /** When this run last reported failing probes in this round. */
  readonly reportedMs?: number;
}

const INTERVAL_MS = 60_000;

/** How long a probe of the config in force waits before it runs again. */
export const intervalMs = ({ spec }: ConfigEntry): number => durationMs(String(spec['interval'])) ?? INTERVAL_MS;

/** Nothing is known but the probes, if the config is at hand. Each of them is due at its time. */
export function newHealth(
  round: number,
  config: Config | undefined,
  dueMs: (probe: ConfigEntry) => number,
  results: readonly ProbeResult[] = [],
): Health {
  const probes = config && probesOf(config);
  return {
    round,
    probes,
    dueMs: new Map(probes?.map((probe) => [probe.name, dueMs(probe)])),
    results: new Map(results.map((result) => [result.name, result])),
    isNew: probes?.length === 0,
  };
}

export const dueProbes = ({ probes = [], dueMs }: Health, nowMs: number): readonly ConfigEntry[] =>
  probes.filter(({ name }) => (dueMs.get(name) ?? Infinity) <= nowMs);

/** These probes run now. */
export function started(health: Health, probes: readonly ConfigEntry[]): Health {
  const dueMs = new Map(health.dueMs);
  for (const { name } of probes) dueMs.delete(name);
  return { ...health, dueMs };
}

/** These probes have run. What a target does not answer is not known, and the previous result stays. */
export function finished(health: Health, results: readonly ProbeResult[], nowMs: number): Health {
  const dueMs = new Map(health.dueMs);
  for (const probe of health.probes ?? [])
    if (results.some(({ name }) => name === probe.name)) dueMs.set(probe.name, nowMs + intervalMs(probe));
  const known = results.filter(({ unreachable }) => unreachable !== true);
  return {
    ...health,
    dueMs,
    isNew: health.isNew || known.length > 0,
    results: new Map([...health.results, ...known.map((one) => [one.name, one] as const)]),
  };
}

/** The failing probes; undefined until each has run. */
export function failingProbes({ probes, results }: Health): readonly FailingProbe[] | undefined {
  if (probes === undefined || probes.some(({ name }) => !results.has(name))) return undefined;
  return probes.flatMap(({ name }) => failingOf(results.get(name)));
}

/** A probe as a report names it; nothing if it passed. */
export const failingOf = (result: ProbeResult | undefined): readonly FailingProbe[] =>
  result === undefined || result.passed ? [] : [{ probe: result.name, reason: result.reason }];
