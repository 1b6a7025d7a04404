import { createHash } from 'node:crypto';
import { Module, type Provider } from '@nestjs/common';
import { Bus, DEFAULT_LEADER_TTL_MS, LEDGER_OPTIONS, LOGGER, ServiceNotes, type LedgerServiceOptions } from '#libs/bus';
import { Kube, slownessNote } from '#libs/kube';
import type { Logger } from '#libs/runtime';
import { Admission } from './shell/admission/admission.js';
import { webhookFrom } from './shell/admission/settings.js';
import { Gateway } from './shell/gateway.js';
import { debounceFrom } from './shell/debounce.js';

const GATEWAY: Provider = {
  provide: Gateway,
  inject: [Bus, LOGGER, LEDGER_OPTIONS, ServiceNotes],
  useFactory: async (
    bus: Bus,
    logger: Logger,
    { leaderTtlMs = DEFAULT_LEADER_TTL_MS }: LedgerServiceOptions,
    notes: ServiceNotes,
  ) => {
    const [debounceMs, webhook] = [debounceFrom(process.env), webhookFrom(process.env)];
    const kube = await Kube.open({ logger, onSlow: (words) => notes.set('api-server', slownessNote(words)) });
    logger.info({ server: kube.server }, 'custom resources are published');
    const digest = (text: string): string => createHash('sha256').update(text).digest('hex');
    const admission =
      webhook === undefined ? undefined : await new Admission({ bus, kube, logger, notes, digest }, webhook).start();
    const told = admission === undefined ? {} : { admission: () => admission.standing };
    return new Gateway({ bus, kube, logger, digest, debounceMs, notes, ...told }, leaderTtlMs, admission).start();
  },
};

@Module({ providers: [GATEWAY] })
export class GatewayModule {}
