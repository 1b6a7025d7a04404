import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { GO_SETTINGS } from '#libs/api-servers';
import { buildOnce, cacheHome } from '#libs/process';
import { besideSources } from './binaries.js';

/** Programs from which Flux fetches, and their packages. They are not ours, so they show how Flux is served. */
const STORES = {
  registry: 'github.com/google/go-containerregistry/cmd/registry',
  gofakes3: 'github.com/johannesboyne/gofakes3/cmd/gofakes3',
} as const;
export type StoreProgram = keyof typeof STORES;
export const STORE_PROGRAMS = Object.keys(STORES) as readonly StoreProgram[];

const run = promisify(execFile);

/** The path of the program: from the user's cache, or built into it, which takes some seconds. */
export async function findStore(
  program: StoreProgram,
  say: (text: string) => void = (text) => void process.stderr.write(`${text}\n`),
): Promise<string> {
  const path = cached(program);
  if (!existsSync(path)) await buildOnce(path, say, `${program}, for the tests`, (folder) => build(folder, program));
  return path;
}

async function build(folder: string, program: StoreProgram): Promise<string> {
  const out = join(folder, program);
  await run('nice', ['-n', '10', 'go', 'build', '-ldflags', '-s -w', '-o', out, STORES[program]], {
    cwd: modules(),
    env: { ...process.env, ...GO_SETTINGS },
    maxBuffer: 1 << 24,
  });
  return out;
}

function cached(program: StoreProgram): string {
  const digest = createHash('sha256');
  for (const file of ['go.mod', 'go.sum']) digest.update(readFileSync(join(modules(), file)));
  return join(cacheHome(process.env), `stores-${digest.digest('hex').slice(0, 12)}`, program);
}

const modules = (): string => besideSources('store-modules');
