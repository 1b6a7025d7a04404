import { connectFleet, type FleetClient, type FleetOptions } from '#libs/client';
import { UnreachableError } from '../ports.js';

/** Where another Sluice is, and as which source this one publishes there. */
export interface FleetAddress {
  readonly connection: Omit<FleetOptions, 'name' | 'logger'>;
  /** What is published there belongs to this source. Each hub needs its own. */
  readonly source: string;
  /** Differs if the content of a file has changed to which `connection` refers. */
  readonly files: string;
}

/** Calls to another Sluice, as one of its sources. */
export interface FleetCalls {
  readonly source: string;
  /** Throws UnreachableError if the other Sluice does not answer, or does not let this one in. */
  call<T>(work: (fleet: FleetClient) => Promise<T>): Promise<T>;
}

/** Without these, nothing published there is rolled out. */
const NEEDED = ['merger', 'validator', 'scheduler'];

/** The connection to another Sluice. It is made at the first call, and again if it was lost for good. */
export class FleetLink implements FleetCalls {
  private client: Promise<FleetClient> | undefined;
  private isClosed = false;

  constructor(
    private readonly address: FleetAddress,
    /** Throws UnreachableError if this hub must not publish there. Called before any other call. */
    private readonly admit: (fleet: FleetClient) => Promise<void> = () => Promise.resolve(),
  ) {}

  get source(): string {
    return this.address.source;
  }

  async call<T>(work: (fleet: FleetClient) => Promise<T>): Promise<T> {
    try {
      return await work(await this.connected());
    } catch (error) {
      const { name, message } = error as Error;
      if (!AWAY.has(name)) throw error;
      throw new UnreachableError(message);
    }
  }

  /** A cheap call. Throws UnreachableError unless all services that a rollout there needs answer. */
  async ask(): Promise<void> {
    const missing = await this.call((fleet) => fleet.missingServices());
    const needed = missing.filter((service) => NEEDED.includes(service));
    if (needed.length > 0)
      throw new UnreachableError(
        `the ${needed.join(' and the ')} of that fleet ${needed.length === 1 ? 'does' : 'do'} not answer`,
      );
    await this.call((fleet) => this.admit(fleet));
  }

  async close(): Promise<void> {
    this.isClosed = true;
    const { client } = this;
    this.client = undefined;
    await (await client?.catch(() => undefined))?.close();
  }

  private connected(): Promise<FleetClient> {
    if (this.isClosed) throw new UnreachableError('the applier is stopping');
    if (this.client !== undefined) return this.client;
    const client = this.connect();
    this.client = client;
    client.catch(() => {
      if (this.client === client) this.client = undefined;
    });
    return client;
  }

  private async connect(): Promise<FleetClient> {
    const client = await connectFleet({
      ...this.address.connection,
      name: `sluice applier for fleets (${this.source})`,
    });
    try {
      await this.admit(client);
      return client;
    } catch (error) {
      await client.close();
      throw error;
    }
  }
}

const AWAY: ReadonlySet<string> = new Set([
  'NoConnectionError',
  'AccessError',
  'NoJetStreamError',
  'ServerTooOldError',
]);
