import { Election } from '#libs/nats';
import type { Admission } from './admission/admission.js';
import { GatewaySession, type GatewayParts } from './session.js';

/**
 * Runs one session while this copy leads; the other copies wait. Two leaders at once are harmless: each sees what the
 * other does.
 */
export class Gateway {
  private readonly election: Election;
  private session: GatewaySession | undefined;

  constructor(
    private readonly parts: GatewayParts,
    ttlMs: number,
    private readonly admission?: Admission,
  ) {
    const { bus, logger } = parts;
    this.election = new Election({ bus, name: 'gateway', ttlMs, logger, onChange: (leading) => this.lead(leading) });
  }

  start(): this {
    this.election.start();
    return this;
  }

  /** Called by Nest. */
  async onModuleDestroy(): Promise<void> {
    this.lead(false);
    await this.election.stop();
    await this.admission?.close();
    await this.parts.kube.close();
  }

  private lead(leading: boolean): void {
    this.session?.stop();
    this.session = leading ? new GatewaySession(this.parts).start() : undefined;
  }
}
