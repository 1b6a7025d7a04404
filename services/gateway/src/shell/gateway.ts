import { Election } from '#libs/nats';
import type { Admission } from './admission/admission.js';
import { GatewaySession, type GatewayParts } from './session.js';

/**
 * While this copy leads, one session; the others only wait. Two that believe to lead are harmless: what either does is
 * seen by both.
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
