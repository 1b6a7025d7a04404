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
/** When to try again what was refused: the other fleet may be rolling it out, or it works there. */
const AGAIN_MS = 600_000;
/** More than anybody has, so that the memory of this cannot grow forever. */
const MOST_REFUSED = 10_000;

/**
 * Exchanges known-bad configs with another fleet: what one of them has found to be bad is refused in both, and a hub
 * passes on what one fleet has found to all others.
 *
 * What is exchanged are findings: a lease in some fleet that ended as invalid. Whatever is repeated or late, each
 * finding is added once, and never again after it was cleared. So a clear needs no clock to hold, and a config that is
 * found to be bad again travels again. A clear at the hub clears it in the fleets that have it only from the hub, and a
 * clear in the fleet that found it clears it at the hub, unless another one has found it, too.
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
    const { link, hub } = this.options;
    await link
      .call(async (other) => {
        const [here, there] = await Promise.all([configsOf(hub), configsOf(other)]);
        for (const bad of there.values()) await this.fromFleet(bad, here.get(bad.hash));
        for (const bad of here.values()) await this.fromHub(other, bad, there.get(bad.hash));
      })
      .catch(() => undefined);
    this.isRunning = false;
  }

  private async fromFleet(there: KnownBadView, here: KnownBadView | undefined): Promise<void> {
    const { fleet, hub } = this.options;
    if (!there.gone) {
      for (const finding of there.findings.filter(isOwn))
        if (!knows(here, `${fleet} ${finding}`)) await this.add(hub, there, fleet, finding);
    } else if (here?.gone === false && here.findings.every((one) => isOf(one, fleet) && knows(there, nameOf(one))))
      await this.clear(hub, there, here.findings);
  }

  private async fromHub(other: FleetClient, here: KnownBadView, there: KnownBadView | undefined): Promise<void> {
    const { fleet } = this.options;
    if (!here.gone) {
      for (const finding of here.findings) {
        const of = isOwn(finding) ? HUB : fleetOf(finding);
        const name = nameOf(finding);
        if (of !== fleet && !knows(there, `${of} ${name}`)) await this.add(other, here, of, name);
      }
    } else if (there?.gone === false && there.findings.every((one) => !isOwn(one) && knows(here, atHub(one))))
      await this.clear(other, here, there.findings);
  }

  private add(
    to: FleetClient,
    { hash, recipe, node, change, reason }: KnownBadView,
    fleet: string,
    finding: string,
  ): Promise<void> {
    const body = { hash, node, change, reason, fleet, finding, ...(recipe === '' ? {} : { recipe }) };
    return this.tried(`${to.server} ${hash} ${fleet} ${finding}`, () => to.request('ops.known-bad.add', body));
  }

  /** `findings`: what is cleared. If it is found to be bad again meanwhile, nothing is. */
  private clear(to: FleetClient, cleared: KnownBadView, findings: readonly string[]): Promise<void> {
    const { hash, clearedBy: by, clearedReason: reason } = cleared;
    return this.tried(`${to.server} ${hash} clear ${findings.join()}`, () =>
      to.request('ops.known-bad.clear', { hash, by, reason, findings }),
    );
  }

  private async tried(key: string, work: () => Promise<unknown>): Promise<void> {
    if ((this.refused.get(key) ?? -Infinity) > performance.now()) return;
    try {
      await work();
    } catch (error) {
      if ((error as Error).name !== 'OpsError') throw error;
      if (this.refused.size >= MOST_REFUSED) this.refused.clear();
      this.refused.set(key, performance.now() + AGAIN_MS);
    }
  }
}

/** A finding of another fleet is after its name. */
const isOwn = (finding: string): boolean => !finding.includes(' ');
const fleetOf = (finding: string): string => finding.slice(0, finding.indexOf(' '));
const nameOf = (finding: string): string => finding.slice(finding.indexOf(' ') + 1);
const isOf = (finding: string, fleet: string): boolean => !isOwn(finding) && fleetOf(finding) === fleet;
/** A finding that a fleet has from the hub, as the hub calls it. */
const atHub = (finding: string): string => (fleetOf(finding) === HUB ? nameOf(finding) : finding);

/** Whether a finding is known there, or was and has been cleared. */
const knows = (view: KnownBadView | undefined, finding: string): boolean =>
  view !== undefined && (view.findings.includes(finding) || view.clearedFindings.includes(finding));

/** Each known-bad config, and each that was cleared, by its hash. */
async function configsOf(fleet: FleetClient): Promise<ReadonlyMap<string, KnownBadView>> {
  const views = await fleet.list('known-bad');
  return new Map([...views].filter(([key]) => key.startsWith('config.')).map(([, view]) => [view.hash, view]));
}
