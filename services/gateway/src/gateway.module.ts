import { createHash } from 'node:crypto';
import { Module, type Provider } from '@nestjs/common';
import { Bus, DEFAULT_LEADER_TTL_MS, LEDGER_OPTIONS, LOGGER, type LedgerServiceOptions } from '#libs/bus';
import { Kube } from '#libs/kube';
import type { Logger } from '#libs/runtime';
import { Gateway } from './shell/gateway.js';
import { debounceFrom } from './shell/debounce.js';

const GATEWAY: Provider = {
  provide: Gateway,
  inject: [Bus, LOGGER, LEDGER_OPTIONS],
  useFactory: async (bus: Bus, logger: Logger, { leaderTtlMs = DEFAULT_LEADER_TTL_MS }: LedgerServiceOptions) => {
    const kube = await Kube.open({ logger });
    logger.info({ server: kube.server }, 'custom resources are published');
    const digest = (text: string): string => createHash('sha256').update(text).digest('hex');
    return new Gateway({ bus, kube, logger, digest, debounceMs: debounceFrom(process.env) }, leaderTtlMs).start();
  },
};

@Module({ providers: [GATEWAY] })
export class GatewayModule {}
