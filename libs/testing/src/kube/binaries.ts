import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { buildOnce } from '#libs/process';
import { whyNoGo } from '../go.js';
import { sources } from './sources.js';

/** The paths of the programs of a control plane. */
export interface KubeBinaries {
  readonly etcd: string;
  readonly apiServer: string;
  readonly controllerManager: string;
}

const VERSION = 'v1.36.3';
/** `go` names the program of such a package after the last part of its path, or after the part before `v3`. */
const PACKAGES = [
  'go.etcd.io/etcd/server/v3',
  'k8s.io/kubernetes/cmd/kube-apiserver',
  'k8s.io/kubernetes/cmd/kube-controller-manager',
];
const SETTINGS = { CGO_ENABLED: '0', GOWORK: 'off', GOFLAGS: '-trimpath -buildvcs=false -mod=readonly' };

const run = promisify(execFile);

/**
 * The programs of a real control plane: from the user's cache, or built into it, which takes four minutes on two cores.
 */
export async function findKubeBinaries(
  say: (text: string) => void = (text) => void process.stderr.write(`${text}\n`),
): Promise<KubeBinaries> {
  const folder = cacheFolder();
  if (!existsSync(folder)) {
    await mkdir(dirname(folder), { recursive: true });
    await buildOnce(
      folder,
      say,
      `kube-apiserver, etcd and kube-controller-manager ${VERSION}, for the tests (SLUICE_NO_KUBE=1 leaves those out)`,
      build,
    );
  }
  return {
    etcd: join(folder, 'server'),
    apiServer: join(folder, 'kube-apiserver'),
    controllerManager: join(folder, 'kube-controller-manager'),
  };
}

/** Why an API server is not available for tests; undefined if it exists or can be built. */
export function whyNoKube(env: NodeJS.ProcessEnv = process.env): string | undefined {
  if ((env['SLUICE_NO_KUBE'] ?? '') !== '') return 'SLUICE_NO_KUBE is set';
  if (existsSync(cacheFolder())) return undefined;
  return whyNoGo('a kube-apiserver');
}

/** One command for all, because they share most of their packages. It is niced, because only tests wait for it. */
async function build(folder: string): Promise<string> {
  const of = 'k8s.io/component-base/version';
  const [, major, minor] = /v(\d+)\.(\d+)/.exec(VERSION) as unknown as [string, string, string];
  const flags = `-s -w -X ${of}.gitVersion=${VERSION} -X ${of}.gitMajor=${major} -X ${of}.gitMinor=${minor}`;
  const out = join(folder, 'bin');
  await mkdir(out);
  await run('nice', ['-n', '10', 'go', 'build', '-ldflags', flags, '-o', `${out}/`, ...PACKAGES], {
    cwd: sources('modules'),
    env: { ...process.env, ...SETTINGS },
    maxBuffer: 1 << 24,
  });
  return out;
}

/** The name depends on everything that it is built from: another version or list of modules uses another folder. */
function cacheFolder(): string {
  const cacheHome = process.env['XDG_CACHE_HOME'] ?? '';
  const base = cacheHome === '' ? join(process.env['HOME'] ?? homedir(), '.cache') : cacheHome;
  const digest = createHash('sha256');
  for (const file of ['go.mod', 'go.sum']) digest.update(readFileSync(join(sources('modules'), file)));
  return join(base, 'sluice', 'kube', `${VERSION}-${digest.digest('hex').slice(0, 12)}`);
}
