import { STRATEGIES, type Strategy } from '../core/index.js';

/** SLUICE_DRAIN: how nodes are drained; default `none`. Throws for another word. */
export function strategyFrom(environment: Readonly<Record<string, string | undefined>>): Strategy {
  const text = environment['SLUICE_DRAIN'] ?? 'none';
  const strategy = STRATEGIES.find((one) => one === text);
  if (strategy === undefined)
    throw new Error(`SLUICE_DRAIN is ${JSON.stringify(text)}, and must be one of ${STRATEGIES.join(', ')}`);
  return strategy;
}

/** SLUICE_POD: the pod that this process runs in, as namespace/name; empty outside Kubernetes. */
export const selfFrom = (environment: Readonly<Record<string, string | undefined>>): string =>
  environment['SLUICE_POD'] ?? '';
