import type { ConfigEntry } from '#libs/contracts';
import { Refused } from '../ports.js';
import { execProbe } from './exec-probe.js';
import { fileProbe } from './file-probe.js';
import { httpProbe } from './http-probe.js';
import type { ProbeType } from './probe-type.js';
import { reachProbe } from './reach-probe.js';
import { tcpProbe } from './tcp-probe.js';

/** Every type of probe, by the field of its spec. */
export const PROBE_TYPES: readonly ProbeType[] = [tcpProbe, httpProbe, execProbe, fileProbe, reachProbe];

/** The type of a probe and its part of the spec. Throws Refused when it has not exactly one. */
export function typeOf(entry: ConfigEntry): {
  readonly type: ProbeType;
  readonly spec: Readonly<Record<string, unknown>>;
} {
  const types = PROBE_TYPES.filter(({ field }) => entry.spec[field] !== undefined);
  const [type] = types;
  const spec = type === undefined ? undefined : entry.spec[type.field];
  if (types.length !== 1 || type === undefined || typeof spec !== 'object' || spec === null) {
    throw new Refused(
      'content',
      `a probe has exactly one of ${PROBE_TYPES.filter((one) => one !== reachProbe)
        .map(({ field }) => field)
        .join(', ')}`,
    );
  }
  return { type, spec: spec as Readonly<Record<string, unknown>> };
}
