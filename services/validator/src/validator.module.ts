import { Module } from '@nestjs/common';
import { Blobs, provideLedger } from '#libs/bus';
import { validatorCore } from './core/index.js';
import { Reviewer } from './shell/reviewer.js';
import { ValidatorController } from './shell/validator.controller.js';

@Module({
  controllers: [ValidatorController],
  providers: [
    { provide: Reviewer, inject: [Blobs], useFactory: (blobs: Blobs) => new Reviewer(blobs) },
    provideLedger(
      (reviewer: Reviewer) => ({ core: validatorCore, gather: (needs, state) => reviewer.gather(needs, state) }),
      [Reviewer],
    ),
  ],
})
export class ValidatorModule {}
