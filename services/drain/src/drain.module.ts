import { Module } from '@nestjs/common';
import { provideLedger } from '#libs/bus';
import { drainCore } from './core/index.js';
import { DrainController } from './shell/drain.controller.js';
import { strategyFrom } from './shell/strategy.js';

@Module({ controllers: [DrainController], providers: [provideLedger(() => ({ core: drainCore(strategyFrom(process.env)) }))] })
export class DrainModule {}
