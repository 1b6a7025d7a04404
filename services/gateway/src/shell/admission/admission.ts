import { API_GROUP } from '#libs/manifests';
import type { ServiceNotes } from '#libs/nats';
import { certificateLine, DesiredState, type CertificateStatus } from '../../core/index.js';
import type { GatewayParts } from '../session.js';
import { Certificate } from './certificate.js';
import { followDesiredState } from './desired-state-reader.js';
import { Webhook, type WebhookSettings } from './webhook.js';

export interface AdmissionParts extends Pick<GatewayParts, 'bus' | 'kube' | 'logger' | 'digest'> {
  readonly notes: ServiceNotes;
  /** How often to check for a new certificate. */
  readonly lookMs?: number;
}

/** The webhook and the state that it reads. Every copy runs one, whether it leads or not. */
export class Admission {
  private readonly desired: DesiredState;
  private readonly webhook: Webhook;
  private unfollow: () => void = () => undefined;

  constructor(
    private readonly parts: AdmissionParts,
    { port, certFile, keyFile }: WebhookSettings,
  ) {
    const { logger, notes, lookMs } = parts;
    this.desired = new DesiredState(parts.digest);
    const certificate = new Certificate(certFile, keyFile, logger, ({ is, words, todo }) =>
      notes.set(
        'certificate',
        words === '' ? undefined : { state: is === 'ending' || is === 'kept' ? 'note' : 'bad', words, todo },
      ),
    );
    this.webhook = new Webhook({
      port,
      certificate,
      desired: this.desired,
      mayUse: ({ user, groups }, { plural, purpose }) =>
        parts.kube.mayUser(user, groups, {
          verb: 'use',
          group: API_GROUP,
          resource: `${plural}/purpose`,
          namespace: '',
          name: purpose,
        }),
      logger,
      ...(lookMs === undefined ? {} : { lookMs }),
    });
  }

  async start(): Promise<this> {
    const { bus, kube, logger, notes } = this.parts;
    this.unfollow = followDesiredState(bus, kube, this.desired, logger);
    // Otherwise the API server would send requests to a copy that cannot answer yet.
    notes.waitFor(() =>
      this.port === 0
        ? certificateLine(this.certificateStatus) || 'the webhook is not listening'
        : this.desired.isReady
          ? undefined
          : 'the webhook has not read the desired state yet',
    );
    await this.webhook.start();
    return this;
  }

  get port(): number {
    return this.webhook.port;
  }

  get certificateStatus(): CertificateStatus {
    return this.webhook.certificateStatus;
  }

  async close(): Promise<void> {
    this.unfollow();
    await this.webhook.close();
  }
}
