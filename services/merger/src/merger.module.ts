import { Module } from '@nestjs/common';
import { CHANGES } from '#libs/contracts';
import { Blobs, Bus, provideLedger } from '#libs/bus';
import { mergerCore } from './core/index.js';
import { Diffs } from './shell/diffs.js';
import { MergerController } from './shell/merger.controller.js';
import { Renderer, sha256 } from './shell/renderer.js';
import { Retries } from './shell/retries.js';
import { Upkeep } from './shell/upkeep.js';

@Module({
  controllers: [MergerController],
  providers: [
    { provide: Renderer, inject: [Blobs], useFactory: (blobs: Blobs) => new Renderer(blobs) },
    { provide: Retries, inject: [Bus], useFactory: (bus: Bus) => new Retries(bus) },
    { provide: Diffs, inject: [Bus, Blobs], useFactory: (bus: Bus, blobs: Blobs) => new Diffs(bus, blobs) },
    provideLedger(
      (renderer: Renderer) => ({
        core: mergerCore(sha256),
        input: CHANGES,
        gather: (needs, state) => renderer.gather(needs, state),
      }),
      [Renderer],
    ),
    Upkeep,
  ],
})
export class MergerModule {}
