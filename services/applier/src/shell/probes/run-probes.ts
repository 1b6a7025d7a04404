import type { ConfigEntry } from '#libs/contracts';
import { PROBE_TIMEOUT_MS } from '#libs/manifests/lean';
import type { ProbeResult } from '../../core/index.js';
import { durationOr, RefusedError, type Clock } from '../ports.js';
import {
  CutShortError,
  type ProbeSurroundings,
  execProbe,
  functionProbe,
  httpProbe,
  type ProbeType,
  tcpProbe,
  fileProbe,
} from './probe-types.js';
import { kubeProbe } from './kube-probe.js';
import { reachProbe } from './reach-probe.js';

const RETRIES = 3;
const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 2_000;
/** A try that takes this much longer than it may was paused with this process, and says nothing about the probe. */
const PAUSED_MS = 5_000;
/** A try with less time is useless: its failure would only show that time was short. */
const SHORTEST_TRY_MS = 50;

export function checkProbe(entry: ConfigEntry, surroundings: ProbeSurroundings): void {
  const { type, spec } = typeOf(entry);
  type.check(spec, surroundings);
  timingOf(entry);
}

/** Runs all probes in parallel, each with its retries. All end by `untilMs`, which may be Infinity. */
export function runProbes(
  probes: readonly ConfigEntry[],
  surroundings: ProbeSurroundings,
  untilMs: number,
  clock: Clock,
): Promise<readonly ProbeResult[]> {
  return Promise.all(
    probes.map(async (entry) => {
      const { name } = entry;
      try {
        const failure = await run(entry, surroundings, untilMs, clock);
        return failure === undefined ? { name, passed: true, reason: '' } : { name, passed: false, ...failure };
      } catch (error) {
        return { name, passed: false, reason: (error as Error).message };
      }
    }),
  );
}

async function run(
  entry: ConfigEntry,
  surroundings: ProbeSurroundings,
  untilMs: number,
  clock: Clock,
): Promise<Pick<ProbeResult, 'reason' | 'isCutShort'> | undefined> {
  const { type, spec } = typeOf(entry);
  const { timeoutMs, retries } = timingOf(entry);
  let failure: Pick<ProbeResult, 'reason' | 'isCutShort'> = { reason: 'not enough time to run it', isCutShort: true };
  for (let tries = 0; tries <= retries; tries++) {
    if (tries > 0)
      await pause(Math.min(FIRST_PAUSE_MS * 2 ** (tries - 1), LONGEST_PAUSE_MS, Math.max(0, untilMs - clock())));
    const startedMs = clock();
    const leftMs = untilMs - startedMs;
    if (leftMs < SHORTEST_TRY_MS) return failure;
    let reason: string | undefined;
    try {
      reason = await type.tryOnce(spec, surroundings, Math.min(timeoutMs, leftMs), leftMs);
    } catch (error) {
      reason = (error as Error).message;
      if (error instanceof CutShortError) return failure.isCutShort === true ? { reason, isCutShort: true } : failure;
    }
    if (reason === undefined) return undefined;
    const wasPaused = clock() - startedMs > Math.min(timeoutMs, leftMs) + PAUSED_MS;
    const hadItsTime = !wasPaused && (timeoutMs <= leftMs || clock() < untilMs);
    // Once a try has failed with its whole timeout, the probe has failed, however many tries are left.
    failure = hadItsTime || failure.isCutShort === undefined ? { reason } : { reason, isCutShort: true };
  }
  return failure;
}

function timingOf(entry: ConfigEntry): { readonly timeoutMs: number; readonly retries: number } {
  const { timeout, retries = RETRIES } = entry.spec;
  if (!Number.isInteger(retries) || (retries as number) < 0 || (retries as number) > 100)
    throw new RefusedError('content', `retries ${JSON.stringify(retries)} is not a number from 0 to 100`);
  return { timeoutMs: durationOr(PROBE_TIMEOUT_MS, timeout), retries: retries as number };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Every type of probe, by the field of its spec. */
const PROBE_TYPES: readonly ProbeType[] = [
  tcpProbe,
  httpProbe,
  execProbe,
  fileProbe,
  functionProbe,
  kubeProbe,
  reachProbe,
];

/** The type of a probe and its part of the spec. Throws Refused unless it has exactly one. */
export function typeOf(entry: ConfigEntry): {
  readonly type: ProbeType;
  readonly spec: Readonly<Record<string, unknown>>;
} {
  const types = PROBE_TYPES.filter(({ field }) => entry.spec[field] !== undefined);
  const [type] = types;
  const spec = type === undefined ? undefined : entry.spec[type.field];
  if (types.length !== 1 || type === undefined || typeof spec !== 'object' || spec === null) {
    throw new RefusedError(
      'content',
      `a probe must have exactly one of ${PROBE_TYPES.filter((one) => one !== reachProbe)
        .map(({ field }) => field)
        .join(', ')}`,
    );
  }
  return { type, spec: spec as Readonly<Record<string, unknown>> };
}
