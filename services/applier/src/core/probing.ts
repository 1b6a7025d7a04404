import { EMPTY_CONFIG, type Config, type ConfigEntry } from '#libs/contracts';
import type { ConfirmationWork, Failure, ForwardWork, ProbesBefore } from './journal.js';
import { notAmong, probesOf } from './plan.js';
import type { Kinds, ProbeResult, Step } from './ports.js';
import { inHand, type Preparation, type State } from './state.js';

/** The share of the lease for the probes that the node has, and for new and changed ones, which need no result. */
const KNOWN_SHARE = 1 / 3;
const ADDED_SHARE = 1 / 12;

/**
 * The probes to run next before a change; undefined if all have run. Those of the config have one try each, so that a
 * probe that has failed for long does not delay the change. Those of the control plane have as many tries as fit,
 * because one that fails is not checked afterwards. New and changed probes run apart: if the applier hangs in one of
 * these, the config is to blame.
 */
export function checkBefore(
  state: State,
  begun: Preparation,
  config: Config,
  mayCutOff: boolean,
  nowMs: number,
): Step | undefined {
  const added = addedProbes(state, begun, config);
  const isKnown = notAmong(added);
  const all = (probes: readonly ConfigEntry[]) =>
    probes.filter(({ name }) => !begun.before.some((result) => result.name === name));
  const known = all([
    ...probesOf(config).filter(isKnown).map(once),
    ...(mayCutOff ? state.settings.kinds.controlPlaneBefore : []),
  ]);
  const { applyMs } = begun.lease;
  if (known.length > 0)
    return { do: 'run-probes', probes: known, untilMs: nowMs + applyMs * KNOWN_SHARE, fault: 'node' };
  const others = all(added.map(once));
  if (others.length > 0)
    return { do: 'run-probes', probes: others, untilMs: nowMs + applyMs * ADDED_SHARE, fault: 'content' };
  return undefined;
}

/**
 * The probes that are new or changed. A rollback of a rollout restores a config that the node already had, so it
 * requires only what passes before it.
 */
function addedProbes(state: State, { lease }: Preparation, config: Config): readonly ConfigEntry[] {
  const inForce = inHand(state, state.journal.inForce) ?? EMPTY_CONFIG;
  return lease.kind === 'rollback' ? [] : probesOf(config).filter(notAmong(probesOf(inForce)));
}

const once = (probe: ConfigEntry): ConfigEntry => ({ ...probe, spec: { ...probe.spec, retries: 0 } });

/** What is known of each probe before a change, given the results of those that were checked. */
export function probesBefore(state: State, begun: Preparation, config: Config, mayCutOff: boolean): ProbesBefore {
  const { memory } = state;
  const { kinds } = state.settings;
  const failedLately = ({ name }: ProbeResult): boolean => memory.health.results.get(name)?.passed === false;
  const required = new Set(addedProbes(state, begun, config).map(({ name }) => name));
  const results = begun.before.map((result): [string, ProbesBefore[string]] => {
    if (result.passed) return [result.name, 'passed'];
    // A probe that ran out of time has not failed, unless it also failed at its last interval.
    const isUnknown = result.isCutShort === true && !failedLately(result);
    return [result.name, required.has(result.name) ? 'required' : isUnknown ? 'unknown' : 'failed'];
  });
  // A node that has a lease has reached what was not checked.
  const reached = mayCutOff ? kinds.controlPlane.filter((probe) => !kinds.controlPlaneBefore.includes(probe)) : [];
  return Object.fromEntries([...reached.map(({ name }) => [name, 'passed']), ...results]) as ProbesBefore;
}

type Confirming = ForwardWork | ConfirmationWork;

/** The probes that must pass after a change. */
export const requiredProbes = (config: Config, { probes }: Confirming, kinds: Kinds): readonly ConfigEntry[] =>
  [...probesOf(config), ...kinds.controlPlane].filter(({ name }) =>
    ['passed', 'required', 'unknown'].includes(probes[name] ?? ''),
  );

/** What is to blame if the applier hangs in the probes that must pass: nothing is known of an `unknown` one. */
export const faultOf = ({ probes }: Confirming): Failure['fault'] =>
  Object.values(probes).includes('unknown') ? 'node' : 'content';

/** The probes of the config that may fail after a change. They have one try each: the change does not wait for them. */
export const otherProbes = (config: Config, { probes }: Confirming): readonly ConfigEntry[] =>
  probesOf(config)
    .filter(({ name }) => probes[name] === 'failed')
    .map(once);

/** Why a change fails if this required probe fails after it. */
export function brokenText({ probes }: Confirming, { name, reason }: ProbeResult, kinds: Kinds): string {
  if (probes[name] === 'passed') return `the probe ${name} passed before and fails now: ${reason}`;
  if (kinds.controlPlane.some((probe) => probe.name === name))
    return `the probe ${name} fails, and there was no time to check it before the change, so give the pool a longer applyTimeout: ${reason}`;
  return `the probe ${name} must pass after this change, but fails: ${reason}`;
}

/** Lists the probes of the control plane that were not checked after a change. */
export function uncheckedText({ probes }: Confirming, kinds: Kinds): readonly string[] {
  const names = kinds.controlPlane.map(({ name }) => name).filter((name) => probes[name] === 'failed');
  return names.length === 0 ? [] : [`not checked, because they failed before the change, too: ${names.join(', ')}`];
}
