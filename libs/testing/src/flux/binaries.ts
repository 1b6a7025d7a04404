import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { copyFile, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { GO_SETTINGS, whyNoGo } from '#libs/api-servers';
import { buildOnce, cacheHome } from '#libs/process';

export type FluxController = 'kustomize-controller' | 'source-controller';
export const FLUX_CONTROLLERS: readonly FluxController[] = ['kustomize-controller', 'source-controller'];

/** While tests run, it takes only the time that nobody else wants. */
const IN_PASSING = { priority: '19', settings: { GOMAXPROCS: '1' }, flags: ['-p', '1'] } as const;
const ALONE = { priority: '10', settings: {}, flags: [] } as const;

const run = promisify(execFile);

export interface FluxProgram {
  readonly path: string;
  /** The folder with the definitions of the same version. */
  readonly definitions: string;
}

/**
 * A controller of Flux: from the user's cache, or built into it. Both share most packages; the first one takes five
 * minutes of CPU, or up to an hour while tests run, and downloads 400 MB.
 */
export async function findFlux(
  controller: FluxController,
  {
    isInPassing = false,
    say = toStderr,
  }: { readonly isInPassing?: boolean; readonly say?: (text: string) => void } = {},
): Promise<FluxProgram> {
  const program = cached(controller);
  if (!existsSync(program.path))
    await buildOnce(
      program.path,
      say,
      `${controller} of Flux, for the tests (SLUICE_NO_FLUX=1 leaves those out)`,
      (folder) => build(folder, controller, program, isInPassing),
    );
  return program;
}

/** Why a controller is not available for tests now; undefined if it is. Tests do not wait until it is built. */
export function whyNoFlux(controller: FluxController, env: NodeJS.ProcessEnv = process.env): string | undefined {
  if ((env['SLUICE_NO_FLUX'] ?? '') !== '') return 'SLUICE_NO_FLUX is set';
  if (existsSync(cached(controller).path)) return undefined;
  return whyNoGo(`${controller} of Flux`) ?? `${controller} of Flux is not built yet: npm run test:flux builds it`;
}

/** Whether tests may have it at all. */
export const mayHaveFlux = (): boolean =>
  (process.env['SLUICE_NO_FLUX'] ?? '') === '' && whyNoGo('a controller of Flux') === undefined;

async function build(
  folder: string,
  controller: FluxController,
  { definitions }: FluxProgram,
  isInPassing: boolean,
): Promise<string> {
  const { priority, settings, flags } = isInPassing ? IN_PASSING : ALONE;
  const module = `github.com/fluxcd/${controller}`;
  const out = join(folder, controller);
  if (isInPassing) await yieldToOthers();
  const options = { cwd: modules(), env: { ...process.env, ...GO_SETTINGS, ...settings }, maxBuffer: 1 << 24 };
  await run('nice', ['-n', priority, 'go', 'build', ...flags, '-ldflags', '-s -w', '-o', out, module], options);
  const { stdout } = await run('go', ['list', '-m', '-f', '{{.Dir}}', module], options);
  const source = join(stdout.trim(), 'config/crd/bases');
  await mkdir(definitions, { recursive: true });
  for (const file of await readdir(source)) await copyFile(join(source, file), join(definitions, file));
  return out;
}

/**
 * Linux shares the processor between sessions before it looks at priorities, and this process leads one of its own:
 * with a low priority alone, the build would get as much as all tests together.
 */
const yieldToOthers = (): Promise<void> => writeFile('/proc/self/autogroup', '19').catch(() => undefined);

/** The name depends on everything that they are built from. */
function cached(controller: FluxController): FluxProgram {
  const digest = createHash('sha256');
  for (const file of ['go.mod', 'go.sum']) digest.update(readFileSync(join(modules(), file)));
  const folder = join(cacheHome(process.env), `flux-${digest.digest('hex').slice(0, 12)}`);
  return { path: join(folder, controller), definitions: join(folder, `${controller}-definitions`) };
}

const modules = (): string => besideSources('modules');

/** A folder next to the sources of this file: the build has no go.mod. */
export function besideSources(folder: string): string {
  const here = __dirname.split(/[\\/]dist[\\/]/);
  return join(here.length > 1 ? join(here[0] as string, 'libs/testing/src/flux') : __dirname, folder);
}

const toStderr = (text: string): void => void process.stderr.write(`${text}\n`);
