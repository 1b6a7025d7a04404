import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { imageFolder } from './image.js';
import { codename, debianSources, missing } from './tools.js';

/**
 * Why a VM is not available; undefined if there is an image. It is built if necessary, because only then it is known
 * whether it can be built.
 */
export function whyNoVm(env: NodeJS.ProcessEnv = process.env): string | undefined {
  if ((env['SLUICE_NO_VM'] ?? '') !== '') return 'SLUICE_NO_VM is set';
  if (existsSync(imageFolder())) return missing().includes('qemu-system-x86_64') ? built() : undefined;
  if (process.platform !== 'linux' || process.arch !== 'x64') return 'the VM is one of Linux on x86-64';
  if (process.getuid?.() !== 0) return 'only root may build the image of a VM';
  if (codename() === undefined || debianSources() === undefined)
    return "the image of a VM is built from Debian's packages, and this machine knows no Debian";
  return built();
}

/** A build that failed would fail again for the next file of tests. */
const AGAIN_MS = 10 * 60_000;

/** In a separate process, because the names of tests must be known synchronously. */
function built(): string | undefined {
  const failed = `${imageFolder()}.failed`;
  if (existsSync(failed) && Date.now() - statSync(failed).mtimeMs < AGAIN_MS) return readFileSync(failed, 'utf8');
  const why = tryToBuild();
  if (why !== undefined && existsSync(dirname(failed))) writeFileSync(failed, why);
  return why;
}

function tryToBuild(): string | undefined {
  const script = [__dirname, __dirname.replace(`${sep}libs${sep}testing`, `${sep}dist${sep}libs${sep}testing`)]
    .map((folder) => join(folder, 'build-image.js'))
    .find(existsSync);
  if (script === undefined) return 'the image of a VM is built after a build of the project';
  const { status, stdout } = spawnSync(process.execPath, [script], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return status === 0 ? undefined : `no image of a VM can be built: ${stdout.trim().slice(-300)}`;
}
