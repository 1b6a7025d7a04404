import { Inject, Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { CONFIGS, LEDGER, TARGETS } from '#libs/contracts';
import { Bus, LedgerService, listViews, readAll, sweepBlobs, trimLedger } from '#libs/nats';
import { LOGGER, SETTINGS } from '#libs/nest';
import { monotonicMs, type Logger, type Settings } from '#libs/process';
import { areTargetsNamed, namedConfigs, type Input, type State } from '../core/index.js';

/** Not at once: a copy that begins to lead has better things to do. What takes longer waits for the second time. */
const FIRST_MS = 60_000;
const DAY_MS = 24 * 3_600_000;
/** What was written and is named by no fact within this time never will be by that writing. */
const SETTLED_MS = 3_600_000;

type Tuning = Pick<Settings, 'ledgerMs' | 'unreferencedMs' | 'cleanupMs'> & { readonly settledMs?: number };

/**
 * What the leader does besides deciding: lets go of what nobody needs. Two that believe to lead do it twice, which is
 * harmless.
 */
@Injectable()
export class Upkeep implements OnModuleInit, OnModuleDestroy {
  private timer: NodeJS.Timeout | undefined;
  private unlisten: () => void = () => undefined;
  private sweptMs: number | undefined;

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
  }

  private follow(): void {
    const { leading } = this.ledger;
    if (leading && this.timer === undefined) this.next(Math.min(FIRST_MS, this.settings.cleanupMs), true);
    if (leading) return;
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private next(afterMs: number, isFirst = false): void {
    const timer = setTimeout(() => {
      void this.keepUp(isFirst).finally(() => {
        // It may lead no more, or again.
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
    // Often enough that what is named again is found so before its time has run out.
    const everyMs = Math.min(DAY_MS, this.settings.unreferencedMs / 3);
    if (isFirst) return;
    if (this.sweptMs !== undefined && monotonicMs() - this.sweptMs < everyMs) return;
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

  /** Targets after configs: what has become of a change by then is known to both. */
  private async sweep(): Promise<void> {
    const sweeping = {
      bus: this.bus,
      unnamedMs: this.settings.unreferencedMs,
      settledMs: this.settings.settledMs ?? SETTLED_MS,
      logger: this.logger,
    };
    await sweepBlobs({ ...sweeping, bucket: CONFIGS, naming: () => this.configsNamed() });
    await sweepBlobs({ ...sweeping, bucket: TARGETS, naming: () => this.targetsNamed() });
  }

  private async configsNamed(): Promise<(key: string) => boolean> {
    const [statuses, leases] = await Promise.all([listViews(this.bus, 'status'), listViews(this.bus, 'leases')]);
    const named = await this.ledger.query((state) =>
      namedConfigs(state, { statuses: statuses.values(), leases: leases.values() }),
    );
    return (key) => named.has(key);
  }

  private async targetsNamed(): Promise<(key: string) => boolean> {
    const inFacts = new Set<string>();
    await readAll(this.bus, { stream: LEDGER, filters: ['config.rendered.*'] }, (message) => {
      for (const key of targetsIn(message.string())) inFacts.add(key);
    });
    const open = await this.ledger.query((state) => new Set(state.openChanges));
    return (key) => areTargetsNamed(open, inFacts, key);
  }
}

/** Read by hand: also what this version of the code could not decode names its targets. */
function targetsIn(text: string): readonly string[] {
  try {
    const { targets } = JSON.parse(text) as { readonly targets?: unknown };
    return Array.isArray(targets) ? targets.filter((key) => typeof key === 'string') : [];
  } catch {
    return [];
  }
}
