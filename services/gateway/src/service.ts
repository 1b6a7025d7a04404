import { createHash } from 'node:crypto';
import type { Provider } from '@nestjs/common';
import { Bus, DEFAULT_LEADER_TTL_MS, ServiceNotes, type LedgerServiceOptions } from '#libs/nats';
import { LEDGER_OPTIONS, LOGGER, SETTINGS, type ServiceSpec } from '#libs/nest';
import { Kube, slownessNote } from '#libs/kube';
import type { Logger, Settings } from '#libs/process';
import { Admission } from './shell/admission/admission.js';
import { webhookFrom } from './shell/admission/webhook.js';
import { Gateway } from './shell/gateway.js';

const GATEWAY: Provider = {
  provide: Gateway,
  inject: [Bus, LOGGER, LEDGER_OPTIONS, ServiceNotes, SETTINGS],
  useFactory: async (
    bus: Bus,
    logger: Logger,
    { leaderTtlMs = DEFAULT_LEADER_TTL_MS }: LedgerServiceOptions,
    notes: ServiceNotes,
    settings: Settings,
  ) => {
    const webhook = webhookFrom(settings);
    const kube = await Kube.open({ logger, onSlow: (words) => notes.set('api-server', slownessNote(words)) });
    logger.info({ server: kube.server }, 'publishing custom resources');
    const digest = (text: string): string => createHash('sha256').update(text).digest('hex');
    const admission =
      webhook === undefined ? undefined : await new Admission({ bus, kube, logger, notes, digest }, webhook).start();
    const certificate = admission === undefined ? {} : { admission: () => admission.certificateStatus };
    return new Gateway(
      { bus, kube, logger, digest, debounceMs: settings.debounceMs, notes, ...certificate },
      leaderTtlMs,
      admission,
    ).start();
  },
};

export const service: ServiceSpec = {
  name: 'gateway',
  description: 'publishes Kubernetes custom resources as changes, and reports progress in their status',
  providers: [GATEWAY],
};
