import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { buildOnce } from '#libs/process';
import { GO_SETTINGS, whyNoGo } from '#libs/api-servers';

const PACKAGE = 'helm.sh/helm/v3/cmd/helm';

const run = promisify(execFile);

/**
 * The program `helm`: SLUICE_HELM, the pinned version in the user's cache, or built into that cache, which takes a
 * minute or two. PATH is not used, because its helm may have any version and print different output.
 */
export async function findHelm(
  say: (text: string) => void = (text) => void process.stderr.write(`${text}\n`),
): Promise<string> {
  const setting = process.env['SLUICE_HELM'] ?? '';
  if (setting !== '') return setting;
  const path = cachePath();
  if (!existsSync(path))
    await buildOnce(path, say, `helm ${version()}, for the chart (SLUICE_NO_HELM=1 skips its tests)`, build);
  return path;
}

/** Why helm is not available for tests; undefined if it exists or can be built. */
export function whyNoHelm(env: NodeJS.ProcessEnv = process.env): string | undefined {
  if ((env['SLUICE_NO_HELM'] ?? '') !== '') return 'SLUICE_NO_HELM is set';
  if ((env['SLUICE_HELM'] ?? '') !== '' || existsSync(cachePath())) return undefined;
  return whyNoGo('helm');
}

async function build(folder: string): Promise<string> {
  const built = join(folder, 'helm');
  // The Kubernetes version that helm assumes when it is offline. helm's own Makefile sets it the same way.
  const kubernetes = ['pkg/lint/rules', 'pkg/chartutil'].map(
    (at) =>
      `-X helm.sh/helm/v3/${at}.k8sVersionMajor=1 -X helm.sh/helm/v3/${at}.k8sVersionMinor=${moduleVersion('k8s.io/client-go').split('.')[1]}`,
  );
  const flags = `-s -w -X helm.sh/helm/v3/internal/version.version=${version()} ${kubernetes.join(' ')}`;
  await run('nice', ['-n', '10', 'go', 'build', '-ldflags', flags, '-o', built, PACKAGE], {
    cwd: modules(),
    env: { ...process.env, ...GO_SETTINGS },
    maxBuffer: 1 << 24,
  });
  return built;
}

const version = (): string => moduleVersion('helm.sh/helm/v3');
const moduleVersion = (module: string): string =>
  readFileSync(join(modules(), 'go.mod'), 'utf8')
    .split('\n')
    .find((line) => line.trim().startsWith(`${module} v`))
    ?.trim()
    .split(' ')[1] ?? '';

/** The name depends on everything that it is built from. */
function cachePath(): string {
  const setting = process.env['XDG_CACHE_HOME'] ?? '';
  const base = setting === '' ? join(process.env['HOME'] ?? homedir(), '.cache') : setting;
  const digest = createHash('sha256').update(readFileSync(join(modules(), 'go.sum')));
  return join(base, 'sluice', `helm-${version()}-${digest.digest('hex').slice(0, 12)}`);
}

/** Not next to the sources: the build has no go.mod. */
function modules(): string {
  const here = __dirname.split(/[\\/]dist[\\/]/);
  return join(here.length > 1 ? join(here[0] as string, 'libs/testing/src/helm') : __dirname, 'modules');
}
