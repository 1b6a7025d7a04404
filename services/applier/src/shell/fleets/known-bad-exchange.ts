import type { FleetClient } from '#libs/client';
import type { KnownBadView } from '#libs/contracts';
import type { FleetLink } from './fleet-link.js';

export interface KnownBadExchangeOptions {
  /** The name of the other fleet. */
  readonly fleet: string;
  readonly link: Pick<FleetLink, 'call'>;
  readonly hub: FleetClient;
}

/** The name of the hub in the other fleets. */
const HUB = 'hub';
/** When to try again what was refused: the other fleet may be rolling it out, or a person has cleared it there. */
const AGAIN_MS = 600_000;
/** More than anybody has, so that the memory of this cannot grow forever. */
const MOST_REFUSED = 10_000;

/**
 * Exchanges known-bad configs with another fleet: what one of them has found to be bad is refused in both, and a hub
 * passes on what one fleet has found to all others. What a person has cleared at the hub is cleared where it came from
 * the hub.
 */
export class KnownBadExchange {
  /** When to try each of them again. */
  private readonly refused = new Map<string, number>();
  private isRunning = false;

  constructor(private readonly options: KnownBadExchangeOptions) {}

  /** Whatever fails is tried at the next call: neither of the two depends on it. */
  async run(): Promise<void> {
    if (this.isRunning) return;
    this.isRunning = true;
    const { link, fleet, hub } = this.options;
    await link
      .call(async (other) => {
        const [here, there] = await Promise.all([configsOf(hub), configsOf(other)]);
        for (const bad of there.values())
          if (!bad.gone && bad.fleet === undefined && !here.has(bad.hash)) await this.add(hub, bad, fleet);
        for (const bad of here.values()) {
          const found = there.get(bad.hash);
          if (!bad.gone && bad.fleet !== fleet && found === undefined) await this.add(other, bad, bad.fleet ?? HUB);
          if (bad.gone && found?.gone === false && found.fleet !== undefined)
            await other.request('ops.known-bad.clear', {
              hash: bad.hash,
              by: bad.clearedBy,
              reason: bad.clearedReason,
            });
        }
      })
      .catch(() => undefined);
    this.isRunning = false;
  }

  private async add(
    to: FleetClient,
    { hash, recipe, node, change, reason }: KnownBadView,
    fleet: string,
  ): Promise<void> {
    const key = `${to.server} ${hash}`;
    if ((this.refused.get(key) ?? -Infinity) > performance.now()) return;
    try {
      const body = { hash, node, change, reason, fleet, ...(recipe === '' ? {} : { recipe }) };
      await to.request('ops.known-bad.add', body);
    } catch (error) {
      if ((error as Error).name !== 'OpsError') throw error;
      if (this.refused.size >= MOST_REFUSED) this.refused.clear();
      this.refused.set(key, performance.now() + AGAIN_MS);
    }
  }
}

/** Each known-bad config, and each that was cleared, by its hash. */
async function configsOf(fleet: FleetClient): Promise<ReadonlyMap<string, KnownBadView>> {
  const views = await fleet.list('known-bad');
  return new Map([...views].filter(([key]) => key.startsWith('config.')).map(([, view]) => [view.hash, view]));
}
