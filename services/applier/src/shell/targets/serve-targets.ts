import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { connectNodeBus } from '#libs/client';
import { nodeToken } from '#libs/contracts';
import {
  BoundValueStore,
  Journals,
  serverTimeMs,
  Shards,
  writeTargetStatus,
  type Bus,
  type TargetStatus,
} from '#libs/nats';
import type { Log } from '../../core/index.js';
import type { Clock } from '../ports.js';
import { BindingFeed } from './binding-feed.js';
import { runTarget, type Target } from './run-target.js';
import { ServerClock } from './server-clock.js';
import { TargetSet } from './target-set.js';

export interface ServeOptions {
  readonly connection: Bus;
  /** What the targets are, such as `functions`. Copies with the same name share them. */
  readonly name: string;
  /** A folder for configs. Several copies on one machine need their own. */
  readonly folder: string;
  readonly version: string;
  readonly heartbeatMs: number;
  readonly log: Log;
  /** Why a target does not join; undefined as soon as it does, or is no longer served here. */
  readonly onTrouble?: (node: string, reason: string | undefined) => void;
  /** Whether another process, which is no copy of this one, serves a target too. */
  readonly onContest?: (node: string, isContested: boolean) => void;
  /** How long another copy waits for a sign of life before it takes over. */
  readonly leaderTtlMs?: number;
  readonly driftCheckMs?: number;
}

export interface ServedTargets {
  /** The time of the NATS server. Targets use it. */
  readonly clock: Clock;
  /** Shows what a target says about itself. */
  readonly report: (node: string, status: Pick<TargetStatus, 'modules' | 'failure'>) => Promise<void>;
  /** These targets exist now. Labels and addresses may have changed. */
  replace(targets: readonly Target[]): void;
  /** Whether this copy is the one that serves the node, or would if the node still were a target. */
  leads(node: string): boolean;
  /** The node announces itself again, if it runs here. */
  announce(node: string): void;
  /**
   * Deletes what was kept about a node that is no target any more. Resolves once it no longer runs here.
   * `keepsJournal`: the target still has what was applied to it, and its originals are needed if it returns.
   */
  forget(node: string, options: { readonly keepsJournal: boolean }): Promise<void>;
  /** Stops, and hands all targets over to other copies. */
  stop(): Promise<void>;
}

/** More shards than copies, so that they get about equal shares. */
const SHARDS = 16;
const LEADER_TTL_MS = 6_000;
const DRIFT_CHECK_MS = 60_000;
/** Leases are pushed. Reading them is only for pushes that were lost. */
const READ_EVERY_MS = 300_000;

/** Runs the appliers of many targets, and shares them with other copies. There are none before `replace`. */
export async function serveTargets(options: ServeOptions): Promise<ServedTargets> {
  const { connection, name, folder, version, heartbeatMs, log } = options;
  const clock = await ServerClock.start(() => serverTimeMs(connection));
  const journals = new Journals(connection);
  const bucket = new BoundValueStore(connection);
  const wanted = new BindingFeed(connection, log);
  const owner = randomUUID();
  const set = new TargetSet({
    shards: SHARDS,
    log,
    onContest: (node, isContested) => options.onContest?.(node, isContested),
    run: (target, onLost, ending) =>
      runTarget({
        target,
        bus: () => connectNodeBus({ node: target.node, connection }),
        journals,
        bindings: { wanted, bucket },
        owner,
        folder,
        clock: clock.read,
        random: Math.random,
        log,
        version,
        heartbeatMs,
        driftCheckMs: options.driftCheckMs ?? DRIFT_CHECK_MS,
        readEveryMs: READ_EVERY_MS,
        ending,
        onTrouble: (reason) => options.onTrouble?.(target.node, reason),
        onLost,
      }),
  });
  const shards = new Shards({
    bus: connection,
    name: `targets-${name}`,
    count: SHARDS,
    ttlMs: options.leaderTtlMs ?? LEADER_TTL_MS,
    logger: connection.logger,
    onChange: (shard, leads) => set.lead(shard, leads),
  });
  await shards.start();
  return {
    clock: clock.read,
    report: (node, status) =>
      writeTargetStatus(connection, { node, at: new Date(clock.read()).toISOString(), ...status }),
    replace: (targets) => set.replace(targets),
    leads: (node) => set.leads(node),
    announce: (node) => set.announce(node),
    forget: async (node, { keepsJournal }) => {
      await set.settled(node);
      await bucket.remove(node);
      if (keepsJournal) return;
      await journals.remove(node);
      await rm(join(folder, 'configs', nodeToken(node)), { recursive: true, force: true });
    },
    stop: async () => {
      await set.stop();
      wanted.stop();
      await shards.stop();
      clock.stop();
    },
  };
}
