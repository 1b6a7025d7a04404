import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { buildOnce, cacheHome } from '#libs/process';
import { whyNoGo } from './go.js';
import { GO_SETTINGS, KUBE_VERSION, modulesFolder, modulesVersion, versionFlags, whyNoModules } from './modules.js';

const run = promisify(execFile);

/**
 * kubectl of the same version as the API servers: from the user's cache, or built into it, which takes a
 * minute or two once those are built. PATH is not used: its kubectl may have any version, and print something else.
 */
export async function findKubectl(
  say: (text: string) => void = (text) => void process.stderr.write(`${text}\n`),
): Promise<string> {
  const path = cachePath();
  if (!existsSync(path)) await buildOnce(path, say, `kubectl ${KUBE_VERSION} (for the tests)`, build);
  return path;
}

/** Why kubectl is not available for tests; undefined if it exists or can be built. */
export function whyNoKubectl(): string | undefined {
  const noModules = whyNoModules();
  if (noModules !== undefined) return noModules;
  return existsSync(cachePath()) ? undefined : whyNoGo('kubectl');
}

async function build(folder: string): Promise<string> {
  const out = join(folder, 'kubectl');
  await run(
    'nice',
    ['-n', '10', 'go', 'build', '-ldflags', versionFlags(), '-o', out, 'k8s.io/kubernetes/cmd/kubectl'],
    { cwd: modulesFolder(), env: { ...process.env, ...GO_SETTINGS }, maxBuffer: 1 << 24 },
  );
  return out;
}

const cachePath = (): string => join(cacheHome(process.env), 'kubectl', modulesVersion());
