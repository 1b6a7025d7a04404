import type { ApplierRun } from '../core/index.js';
import type { BusPort } from './bus-port.js';

/** When the first heartbeat is tried, and retried until it is sent. */
const FIRST_BEAT_MS = 1_000;

export interface HeartbeatOptions {
  readonly ownMs: number;
  /** At least 0 and below 1. */
  readonly random: () => number;
  /** Without an answer of its target, an applier sends none. */
  readonly isAlive?: () => boolean;
}

/**
 * Sends heartbeats until the returned function is called. The first is sent soon. Otherwise a node that restarts again
 * and again would never run long enough to send one, and become silent. The times of the first two are random, so that
 * a thousand appliers that start together do not send them together.
 */
export function sendHeartbeats(
  bus: BusPort,
  applier: ApplierRun,
  { ownMs, random, isAlive = () => true }: HeartbeatOptions,
): () => void {
  const firstMs = Math.min(FIRST_BEAT_MS, ownMs);
  let isFirst = true;
  let timer = setTimeout(tick, random() * firstMs);
  function tick(): void {
    const { node, incarnation, nonce } = applier.journal;
    const { pacedMs } = bus;
    const everyMs = Math.max(ownMs, pacedMs);
    const isSent = incarnation > 0 && isAlive() && bus.alive({ node, incarnation, nonce, everyMs, pacedMs });
    timer = setTimeout(tick, isFirst ? (isSent ? random() * everyMs : firstMs) : everyMs);
    if (isSent) isFirst = false;
  }
  return () => clearTimeout(timer);
}
