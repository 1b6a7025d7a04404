import { createHash } from 'node:crypto';
import { CHANGES } from '#libs/contracts';
import { provideLedger, type ServiceSpec } from '#libs/nest';
import { mergerCore } from './core/index.js';
import { BoundValueChanges } from './shell/bound-value-changes.js';
import { MergerController } from './shell/merger.controller.js';
import { NameLookups } from './shell/name-lookups.js';
import { Upkeep } from './shell/upkeep.js';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

export const service: ServiceSpec = {
  name: 'merger',
  description: 'renders one config per node from all changes',
  controllers: [MergerController],
  providers: [
    provideLedger(({ sourceQuotaBytes }) => ({ core: mergerCore(sha256, sourceQuotaBytes), input: CHANGES })),
    Upkeep,
    NameLookups,
    BoundValueChanges,
  ],
};
