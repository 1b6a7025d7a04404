import type { Core, Need } from '#libs/kernel';
import { SILENT, type Logger } from '#libs/runtime';
import { Blobs } from './blobs.js';
import type { Bus } from './connection.js';
import { Election } from './election.js';
import { FoldKeeper } from './fold-keeper.js';
import { Integrity } from './integrity.js';
import { Ledger } from './ledger.js';
import { LedgerReader } from './ledger-reader.js';
import { LedgerTail } from './ledger-tail.js';
import { Snapshots } from './snapshots.js';
import { DEFAULT_LEADER_TTL_MS } from './topology.js';

/** What makes a service: its pure core, and how to do the slow work that the core asks for. */
export interface LedgerParts<S, I extends object, N extends Need = never, G = never> {
  readonly core: Core<S, I, N, G>;
  /** The stream in which `core.cursor` is a place. */
  readonly input?: string;
  readonly gather?: (needs: readonly N[], state: S) => Promise<ReadonlyMap<string, G>>;
}

export interface LedgerServiceOptions {
  readonly bus: Bus;
  /** Shared by the services of a process; default: one of its own. */
  readonly tail?: LedgerTail;
  readonly logger?: Logger;
  /** A snapshot after so many facts of the ledger. */
  readonly snapshotFacts?: number;
  /** A snapshot after so long, if facts came since. */
  readonly snapshotMs?: number;
  /** As in the topology. */
  readonly leaderTtlMs?: number;
}

/** What one copy of a service works with. */
export interface ServiceTools<S, I extends object, N extends Need, G> {
  readonly ledger: Ledger;
  readonly reader: LedgerReader;
  readonly keeper: FoldKeeper<S, I, N, G>;
  readonly integrity: Integrity;
  readonly election: Election;
}

/** What the tools tell the copy, and ask it. */
interface Copyist {
  readonly onNews: () => void;
  readonly onLead: (leading: boolean) => void;
  readonly cursor: () => number;
}

const DEFAULT_SNAPSHOT_FACTS = 20_000;
const DEFAULT_SNAPSHOT_MS = 24 * 3_600_000;

export function serviceTools<S, I extends object, N extends Need, G>(
  { core, input }: LedgerParts<S, I, N, G>,
  { bus, tail = new LedgerTail(bus), logger = SILENT, snapshotFacts, snapshotMs, leaderTtlMs }: LedgerServiceOptions,
  { onNews, onLead, cursor }: Copyist,
): ServiceTools<S, I, N, G> {
  const ledger = new Ledger(bus);
  const blobs = new Blobs(bus);
  const targets = core.wantsTargets ? (keys: readonly string[]) => blobs.targets(keys) : undefined;
  const reader = new LedgerReader({ bus, ledger, tail, reads: core.reads, targets, onArrival: onNews, logger });
  return {
    ledger,
    reader,
    keeper: new FoldKeeper({
      core,
      ledger,
      reader,
      snapshots: new Snapshots(bus),
      everyFacts: snapshotFacts ?? DEFAULT_SNAPSHOT_FACTS,
      everyMs: snapshotMs ?? DEFAULT_SNAPSHOT_MS,
      logger,
    }),
    integrity: new Integrity({ bus, ledger, input, cursor, logger, onFit: onNews }),
    election: new Election({
      bus,
      name: core.name,
      ttlMs: leaderTtlMs ?? DEFAULT_LEADER_TTL_MS,
      logger,
      onChange: onLead,
    }),
  };
}
