import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LEDGER, SERVICES } from '#libs/contracts';
import { connectBus } from '#libs/nats';
import { until } from '#libs/testing';
import { ROOT, type Processes } from './processes.js';

/** The services of Sluice that run next to another scheduler. */
export const SERVICES_BESIDE: readonly string[] = SERVICES.filter((name) => name !== 'scheduler');

/**
 * Runs exactly the scheduler that the page on the protocol shows, in a folder where only a NATS client can be loaded.
 * Resolves when it reads the ledger.
 */
export async function startOtherScheduler(processes: Processes, folder: string, url: string): Promise<void> {
  const own = join(folder, 'other-scheduler');
  mkdirSync(join(own, 'node_modules'), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules', '@nats-io'), join(own, 'node_modules', '@nats-io'));
  const page = readFileSync(join(ROOT, 'docs/reference/protocol.md'), 'utf8');
  const programs = [...page.matchAll(/^```js\n([\s\S]*?)^```/gm)].map(([, text]) => text as string);
  if (programs.length !== 1) throw new Error(`the page has ${programs.length} programs, but should have one`);
  const program = join(own, 'scheduler.mjs');
  writeFileSync(program, programs[0] as string);
  processes.start('other-scheduler', [], { program });
  const bus = await connectBus({ servers: [url], name: 'test' });
  await until(async () => {
    const consumers = await bus.jsm.consumers.list(LEDGER).next();
    return consumers.some(({ config }) => [config.filter_subjects ?? config.filter_subject].flat().includes(VALIDATED));
  }, 'the other scheduler reads the ledger');
  await bus.close();
}

const VALIDATED = 'config.validated.*';
