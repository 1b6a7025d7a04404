import type { Bus } from '#libs/bus';
import type { Kube } from '#libs/kube';
import type { Logger } from '#libs/runtime';
import { Wanted, type CertificateStanding } from '../../core/index.js';
import { Certificate } from './certificate.js';
import type { WebhookSettings } from './settings.js';
import { followWanted } from './wanted-view.js';
import { Webhook } from './webhook.js';

/** The webhook with all that it looks at; every copy has its own, whoever leads. */
export class Admission {
  private readonly wanted = new Wanted();
  private readonly webhook: Webhook;
  private unfollow: () => void = () => undefined;

  constructor(private readonly bus: Bus, private readonly kube: Kube, { port, certFile, keyFile }: WebhookSettings, private readonly logger: Logger, lookMs?: number) {
    const certificate = new Certificate(certFile, keyFile, logger);
    this.webhook = new Webhook({ port, certificate, wanted: this.wanted, logger, ...(lookMs === undefined ? {} : { lookMs }) });
  }

  async start(): Promise<this> {
    this.unfollow = followWanted(this.bus, this.kube, this.wanted, this.logger);
    await this.webhook.start();
    return this;
  }

  get port(): number {
    return this.webhook.port;
  }

  get standing(): CertificateStanding {
    return this.webhook.standing;
  }

  async close(): Promise<void> {
    this.unfollow();
    await this.webhook.close();
  }
}
