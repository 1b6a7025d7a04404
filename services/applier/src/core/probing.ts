import { EMPTY_CONFIG, type Config, type ConfigEntry } from '#libs/contracts';
import type { ConfirmationWork, ForwardWork, ProbesBefore } from './journal.js';
import { notAmong, probesOf } from './plan.js';
import type { Kinds, ProbeResult } from './ports.js';
import { inHand, type Preparation, type State } from './state.js';

/**
 * The probes to run before a change. Those of the config have one try each: a probe that has failed for long must not
 * hold up the change. Those of the control plane have as many tries as fit: one that fails is not checked afterwards.
 */
export const checkedBefore = (config: Config, mayCutOff: boolean, kinds: Kinds): readonly ConfigEntry[] => [
  ...probesOf(config).map(once),
  ...(mayCutOff ? kinds.controlPlaneBefore : []),
];

const once = (probe: ConfigEntry): ConfigEntry => ({ ...probe, spec: { ...probe.spec, retries: 0 } });

/** What is known of each probe before a change, given the results of those that were checked. */
export function probesBefore(
  state: State,
  { lease, before = [] }: Preparation,
  config: Config,
  mayCutOff: boolean,
): ProbesBefore {
  const { kinds } = state.settings;
  const inForce = inHand(state, state.journal.inForce) ?? EMPTY_CONFIG;
  // A rollback of a rollout brings back a config that the node had: it requires only what passes before it.
  const added = lease.kind === 'rollback' ? [] : probesOf(config).filter(notAmong(probesOf(inForce)));
  const required = new Set(added.map(({ name }) => name));
  const found = before.map(({ name, passed, isCutShort }): [string, ProbesBefore[string]] => {
    if (passed) return [name, 'passed'];
    // One that ran out of time has not failed.
    return [name, required.has(name) || isCutShort === true ? 'required' : 'failed'];
  });
  // A node that has a lease has reached what was not checked.
  const reached = mayCutOff ? kinds.controlPlane.filter((probe) => !kinds.controlPlaneBefore.includes(probe)) : [];
  return Object.fromEntries([...reached.map(({ name }) => [name, 'passed']), ...found]) as ProbesBefore;
}

type Confirming = ForwardWork | ConfirmationWork;

/** The probes that must pass after a change. */
export const requiredProbes = (config: Config, { probes }: Confirming, kinds: Kinds): readonly ConfigEntry[] =>
  [...probesOf(config), ...kinds.controlPlane].filter(({ name }) =>
    ['passed', 'required'].includes(probes[name] ?? ''),
  );

/** Why a change fails after which this required probe fails. */
export function brokenText({ probes }: Confirming, { name, reason }: ProbeResult, kinds: Kinds): string {
  if (probes[name] === 'passed') return `the probe ${name} passed before and fails now: ${reason}`;
  if (kinds.controlPlane.some((probe) => probe.name === name))
    return `the probe ${name} fails, and there was no time to check it before the change, so give the pool a longer applyTimeout: ${reason}`;
  return `the probe ${name} must pass after this change, but fails: ${reason}`;
}

/** Says which probes of the control plane were not checked after a change. */
export function uncheckedText({ probes }: Confirming, kinds: Kinds): readonly string[] {
  const names = kinds.controlPlane.map(({ name }) => name).filter((name) => probes[name] === 'failed');
  return names.length === 0 ? [] : [`not checked, because they failed before the change, too: ${names.join(', ')}`];
}
