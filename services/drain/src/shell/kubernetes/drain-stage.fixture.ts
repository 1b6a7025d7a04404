import { connectBus, Ledger, type Bus } from '#libs/nats';
import { connectFleet, type FleetClient } from '#libs/client';
import { startService, type RunningService } from '#libs/nest';
import { factSubject, type Action, type DrainView, type Fact, type FactType, type NewFact } from '#libs/contracts';
import { settingsFrom, SILENT } from '#libs/process';
import { factOf, until, startNatsServer, type NatsServer } from '#libs/testing';
import { service as drain } from '../../service.js';

/** The fields of a lease that a spec sets. The rest is as for a pool without settings. */
export interface LeaseSettings {
  readonly drain?: Readonly<Record<string, unknown>>;
  readonly drainMs?: number;
  readonly reboots?: boolean;
}

/** The drain service in this process, on a real nats-server and a real API server. The spec plays the scheduler. */
export class DrainStage {
  private readonly services: RunningService[] = [];
  private readonly leases = new Map<string, number>();

  private constructor(
    readonly server: NatsServer,
    private readonly bus: Bus,
    readonly client: FleetClient,
  ) {}

  static async start(): Promise<DrainStage> {
    const server = await startNatsServer();
    const { url: servers } = server;
    const bus = await connectBus({ servers, name: 'stage' });
    return new DrainStage(server, bus, await connectFleet({ servers: [servers], timeoutMs: 5_000 }));
  }

  /** Starts a copy of the service. Resolves when it follows the ledger. */
  async serve(kubeconfig: string, self = ''): Promise<RunningService> {
    process.env['KUBECONFIG'] = kubeconfig;
    const service = await startService(drain, {
      connection: { servers: this.server.url },
      settings: settingsFrom({
        SLUICE_HEALTH_SECONDS: '0',
        SLUICE_DRAIN: 'kubernetes',
        SLUICE_POD: self,
      }),
      logger: SILENT,
      leaderTtlMs: 1_000,
    });
    this.services.push(service);
    return service;
  }

  /** Appends facts of another service. */
  async append(...facts: readonly NewFact[]): Promise<void> {
    const ledger = new Ledger(this.bus);
    await until(
      async () => (await ledger.append(facts, await ledger.lastSequence())).outcome === 'appended',
      'the facts are appended',
    );
  }

  /** Grants the next lease of a node, with a drain. Returns its id. */
  async grant(node: string, settings: LeaseSettings = {}): Promise<string> {
    const count = (this.leases.get(node) ?? 0) + 1;
    this.leases.set(node, count);
    const lease = `${node}-l${count}`;
    const actions: readonly Action[] = [
      { kind: 'drain' },
      ...(settings.reboots === true ? [{ kind: 'reboot' } as const] : []),
    ];
    await this.append(
      factOf('node.lease.granted', {
        ...this.of(node, lease),
        kind: 'forward',
        phase: 'draining',
        actions: [...actions],
        drainMs: settings.drainMs ?? 600_000,
        ...(settings.drain === undefined ? {} : { drain: settings.drain as never }),
      }),
    );
    return lease;
  }

  /** Changes the drain settings of a lease, as an edit of its pool does. */
  async amend(node: string, lease: string, settings: LeaseSettings): Promise<void> {
    const { drain, drainMs = 600_000 } = settings;
    await this.append(factOf('node.lease.amended', { ...this.of(node, lease), drainMs, drain: drain as never }));
  }

  /** Settles the lease of a node, so that the node must be given back. */
  async settle(node: string, lease: string): Promise<void> {
    await this.append(
      factOf('node.lease.settled', { ...this.of(node, lease), kind: 'forward', because: 'applied' }),
      factOf('node.lease.uncordoning', this.of(node, lease)),
    );
  }

  /** The facts of one type about a lease. */
  async facts<T extends FactType>(type: T, lease: string): Promise<readonly Extract<Fact, { type: T }>[]> {
    const found: Extract<Fact, { type: T }>[] = [];
    const subject = factSubject({ type, node: lease.replace(/-l\d+$/, '') } as unknown as NewFact);
    for await (const { body } of this.client.events({ subject, follow: false, signal: new AbortController().signal })) {
      if ((body as { readonly lease: string }).lease === lease)
        found.push({ type, ...(body as object) } as Extract<Fact, { type: T }>);
    }
    return found;
  }

  /** Waits for the first fact of a type about a lease. */
  async untilFact<T extends FactType>(type: T, lease: string): Promise<Extract<Fact, { type: T }>> {
    return (await until(async () => (await this.facts(type, lease))[0], `${type} of ${lease}`)) as Extract<
      Fact,
      { type: T }
    >;
  }

  /** Waits until the view of a node meets the condition. */
  async untilView(node: string, holds: (view: DrainView) => boolean): Promise<DrainView> {
    return (await until(async () => {
      const view = await this.client.get('drains', node);
      return view !== undefined && holds(view) ? view : undefined;
    }, `the view of the drain of ${node}`)) as DrainView;
  }

  /** Ends all copies that were started. */
  async stopServing(): Promise<void> {
    for (const service of this.services.splice(0)) await service.close();
  }

  async stop(): Promise<void> {
    await this.stopServing();
    await this.client.close();
    await this.bus.close();
    await this.server.stop();
    delete process.env['KUBECONFIG'];
  }

  private of(node: string, lease: string) {
    return { node, pool: 'edge', change: 'c1', lease };
  }
}
