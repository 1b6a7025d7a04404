import { durationText, writtenStrategy } from '#libs/manifests';
import { durationOf } from '../input/times.js';
import { UsageError } from '../output/exit.js';

/** The flags that say how to roll a change out. */
export interface StrategyFlags {
  readonly maxFailures?: string;
  readonly maxUnavailable?: string;
  readonly needsTimeout?: string;
  /** A warning rejects the change. */
  readonly strict?: boolean;
}

/** The strategy of a published change, or nothing if no flag is given. */
export function strategyOf({ maxFailures, maxUnavailable, needsTimeout, strict }: StrategyFlags): object {
  if (maxFailures !== undefined && !/^\d{1,6}$/.test(maxFailures))
    throw new UsageError(`--max-failures: ${JSON.stringify(maxFailures)} is not a number of nodes`);
  if (maxUnavailable !== undefined && !/^([1-9]\d{0,5}|([1-9]\d?|100)%)$/.test(maxUnavailable))
    throw new UsageError(
      `--max-unavailable: ${JSON.stringify(maxUnavailable)} is not a number of nodes, such as 2, or a percentage from 1% to 100%`,
    );
  const needsMs = durationOf(needsTimeout, '--needs-timeout', 1);
  const strategy = {
    ...(maxFailures === undefined ? {} : { maxFailures: Number(maxFailures) }),
    ...(maxUnavailable === undefined ? {} : writtenStrategy({ maxUnavailable })),
    ...(needsMs === undefined ? {} : { needsTimeout: durationText(needsMs) }),
    ...(strict === true ? { strict } : {}),
  };
  return Object.keys(strategy).length === 0 ? {} : { strategy };
}
