import { Inject, Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { CONFIGS, LEDGER, TARGETS } from '#libs/contracts';
import { Bus, LedgerService, listViews, readAll, sweepBlobs, sweepObjects, trimChanges, trimLedger } from '#libs/nats';
import { LOGGER, SETTINGS } from '#libs/nest';
import { monotonicMs, type Logger, type Settings } from '#libs/process';
import { areTargetsReferenced, referencedConfigs, referencedObjects, type Input, type State } from '../core/index.js';

/** Not at once, because a new leader is busy. Slow work is left for the second run. */
const FIRST_MS = 60_000;
const DAY_MS = 24 * 3_600_000;
/** What was written but is not referenced by a fact within this time never will be. */
const SETTLED_MS = 3_600_000;

/**
 * The minimum time between reading a change and deleting it: a server writes the ledger to its disk every two minutes.
 */
const CHANGES_MS = 150_000;

type Tuning = Pick<Settings, 'ledgerMs' | 'unreferencedMs' | 'cleanupMs'> & {
  readonly settledMs?: number;
  readonly keptChangesBytes?: number;
};

/**
 * What the leader does besides deciding: it lets unreferenced values expire. If two copies believe that they lead, both
 * do it, which is harmless.
 */
@Injectable()
export class Upkeep implements OnModuleInit, OnModuleDestroy {
  private timer: NodeJS.Timeout | undefined;
  private unlisten: () => void = () => undefined;
  private sweptMs: number | undefined;
  private changesTimer: NodeJS.Timeout | undefined;
  /** How far the merger had read CHANGES when this was looked at last. */
  private readTo = 0;

  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(LedgerService) private readonly ledger: LedgerService<State, Input>,
    @Inject(SETTINGS) private readonly settings: Tuning,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  onModuleInit(): void {
    this.unlisten = this.ledger.onLeadershipChange(() => this.follow());
  }

  onModuleDestroy(): void {
    this.unlisten();
    clearTimeout(this.timer);
    clearInterval(this.changesTimer);
  }

  private follow(): void {
    const { leading } = this.ledger;
    if (leading && this.timer === undefined) {
      this.next(Math.min(FIRST_MS, this.settings.cleanupMs), true);
      const everyMs = Math.min(CHANGES_MS, this.settings.cleanupMs);
      this.changesTimer = setInterval(() => void this.trimChanges(), everyMs).unref();
    }
    if (leading) return;
    clearTimeout(this.timer);
    clearInterval(this.changesTimer);
    this.timer = undefined;
  }

  private trimChanges(): Promise<void> {
    return this.unhindered('the changes could not be trimmed', async () => {
      await trimChanges(this.bus, this.readTo, this.settings.keptChangesBytes);
      this.readTo = await this.ledger.query((state) => state.cursor.get());
    });
  }

  private next(afterMs: number, isFirst = false): void {
    const timer = setTimeout(() => {
      void this.keepUp(isFirst).finally(() => {
        // It may no longer lead, or lead again.
        if (this.timer === timer) this.next(this.settings.cleanupMs);
      });
    }, afterMs);
    timer.unref();
    this.timer = timer;
  }

  private async keepUp(isFirst: boolean): Promise<void> {
    await this.unhindered('the ledger could not be trimmed', () =>
      trimLedger({ bus: this.bus, keepMs: this.settings.ledgerMs, logger: this.logger }),
    );
    // Often enough that a value that is referenced again is found before it expires.
    const everyMs = Math.min(DAY_MS, this.settings.unreferencedMs / 3);
    if (isFirst) return;
    if (this.sweptMs !== undefined && monotonicMs() - this.sweptMs < everyMs) return;
    await this.unhindered('unused objects could not be deleted', () => this.sweepObjects());
    await this.unhindered('unused blobs could not be deleted', async () => {
      await this.sweep();
      this.sweptMs = monotonicMs();
    });
  }

  private async unhindered(what: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.logger.warn({ error }, `${what}; trying again later`);
    }
  }

  /** Sweeps targets after configs, so that both see the same state of each change. */
  private async sweep(): Promise<void> {
    const sweeping = {
      bus: this.bus,
      unreferencedMs: this.settings.unreferencedMs,
      settledMs: this.settings.settledMs ?? SETTLED_MS,
      logger: this.logger,
    };
    await sweepBlobs({ ...sweeping, bucket: CONFIGS, readReferences: () => this.referencedConfigs() });
    await sweepBlobs({ ...sweeping, bucket: TARGETS, readReferences: () => this.referencedTargets() });
  }

  private async sweepObjects(): Promise<void> {
    const readReferences = async (): Promise<(sha256: string) => boolean> => {
      const referenced = await this.ledger.query(referencedObjects);
      return (sha256) => referenced.has(sha256);
    };
    await sweepObjects({
      bus: this.bus,
      unreferencedMs: this.settings.unreferencedMs,
      readReferences,
      logger: this.logger,
    });
  }

  private async referencedConfigs(): Promise<(key: string) => boolean> {
    const [statuses, leases] = await Promise.all([listViews(this.bus, 'status'), listViews(this.bus, 'leases')]);
    const referenced = await this.ledger.query((state) =>
      referencedConfigs(state, { statuses: statuses.values(), leases: leases.values() }),
    );
    return (key) => referenced.has(key);
  }

  private async referencedTargets(): Promise<(key: string) => boolean> {
    const inFacts = new Set<string>();
    await readAll(this.bus, { stream: LEDGER, filters: ['config.rendered.*'] }, (message) => {
      for (const key of targetsIn(message.string())) inFacts.add(key);
    });
    const open = await this.ledger.query((state) => new Set(state.openChanges));
    return (key) => areTargetsReferenced(open, inFacts, key);
  }
}

/** Parsed by hand, so that facts that this version cannot decode still count. */
function targetsIn(text: string): readonly string[] {
  try {
    const { targets } = JSON.parse(text) as { readonly targets?: unknown };
    return Array.isArray(targets) ? targets.filter((key) => typeof key === 'string') : [];
  } catch {
    return [];
  }
}
