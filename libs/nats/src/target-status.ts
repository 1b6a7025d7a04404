import type { JsMsg } from '@nats-io/jetstream';
import { nodeToken, TARGET_STATUS } from '#libs/contracts';
import type { Bus } from './connection.js';
import { isDeletion } from './messages.js';
import { readAll } from './stream-reader.js';
import { kvStream, kvSubject } from './topology.js';

/** One part of what a target says about itself. */
export interface TargetModule {
  readonly name: string;
  /** As the target answers it; left out if it is too large. */
  readonly status?: unknown;
}

/** What a target elsewhere says about itself. */
export interface TargetStatus {
  readonly node: string;
  /** When it said so. What has not changed is written again every few hours. */
  readonly at: string;
  readonly modules: readonly TargetModule[];
  /** Why it cannot be read; empty if it can. */
  readonly failure: string;
}

/** Replaces what a target said before. */
export async function writeTargetStatus(bus: Bus, status: TargetStatus): Promise<void> {
  await bus.publish(kvSubject(TARGET_STATUS, nodeToken(status.node)), JSON.stringify(status));
}

/** What all targets say, by node. Unreadable values are left out. */
export async function listTargetStatuses(bus: Bus): Promise<ReadonlyMap<string, TargetStatus>> {
  const found = new Map<string, TargetStatus>();
  await readAll(bus, { stream: kvStream(TARGET_STATUS), lastPerSubject: true }, (message) => {
    const status = isDeletion(message) ? undefined : statusIn(message);
    if (status !== undefined) found.set(status.node, status);
  });
  return found;
}

/** Undefined if something other than Sluice wrote the value. */
function statusIn(message: JsMsg): TargetStatus | undefined {
  try {
    const { node, at, modules, failure = '' } = message.json<Partial<TargetStatus>>();
    const isOne = typeof node === 'string' && typeof at === 'string' && Array.isArray(modules);
    if (!isOne) return undefined;
    return { node, at, failure: String(failure), modules: (modules as readonly unknown[]).flatMap(moduleIn) };
  } catch {
    return undefined;
  }
}

function moduleIn(value: unknown): readonly TargetModule[] {
  const { name, status } = (value ?? {}) as Partial<TargetModule>;
  return typeof name === 'string' ? [{ name, ...(status === undefined ? {} : { status }) }] : [];
}
