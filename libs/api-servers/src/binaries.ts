import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { buildOnce, cacheHome } from '#libs/process';
import { whyNoGo } from './go.js';
import { GO_SETTINGS, KUBE_VERSION, modulesFolder, modulesVersion, versionFlags, whyNoModules } from './modules.js';

/** The paths of the programs of a control plane. */
export interface KubeBinaries {
  readonly etcd: string;
  readonly apiServer: string;
  readonly controllerManager: string;
}

export interface BuildOptions {
  /** Receives progress messages for people. Default: stderr. */
  readonly say?: (text: string) => void;
  /** Said about what is built, in brackets. */
  readonly note?: string;
  /** Gives up building. */
  readonly signal?: AbortSignal;
}

/** `go` names the program of such a package after the last part of its path, or after the part before `v3`. */
const PACKAGES = [
  'go.etcd.io/etcd/server/v3',
  'k8s.io/kubernetes/cmd/kube-apiserver',
  'k8s.io/kubernetes/cmd/kube-controller-manager',
];

const run = promisify(execFile);

/**
 * The programs of a real control plane: from the user's cache, or built into it, which takes four minutes on two cores.
 */
export async function findKubeBinaries({
  say = (text) => void process.stderr.write(`${text}\n`),
  note = 'for the tests; SLUICE_NO_KUBE=1 leaves those out',
  signal,
}: BuildOptions = {}): Promise<KubeBinaries> {
  const folder = cacheFolder();
  if (!existsSync(folder)) {
    await mkdir(dirname(folder), { recursive: true });
    const what = `kube-apiserver, etcd and kube-controller-manager ${KUBE_VERSION} (${note})`;
    await buildOnce(folder, say, what, (own) => build(own, signal), signal);
  }
  return {
    etcd: join(folder, 'server'),
    apiServer: join(folder, 'kube-apiserver'),
    controllerManager: join(folder, 'kube-controller-manager'),
  };
}

/** Why an API server is not available; undefined if it exists or can be built. */
export function whyNoKubeBinaries(): string | undefined {
  const noModules = whyNoModules();
  if (noModules !== undefined) return whyNoGo('a kube-apiserver') ?? noModules;
  return existsSync(cacheFolder()) ? undefined : whyNoGo('a kube-apiserver');
}

/** One command for all, because they share most of their packages. It is niced: it takes all cores for minutes. */
async function build(folder: string, signal: AbortSignal | undefined): Promise<string> {
  const out = join(folder, 'bin');
  await mkdir(out);
  await run('nice', ['-n', '10', 'go', 'build', '-ldflags', versionFlags(), '-o', `${out}/`, ...PACKAGES], {
    cwd: modulesFolder(),
    env: { ...process.env, ...GO_SETTINGS },
    maxBuffer: 1 << 24,
    // At this signal, go ends its compilers too.
    killSignal: 'SIGINT',
    ...(signal === undefined ? {} : { signal }),
  });
  return out;
}

const cacheFolder = (): string => join(cacheHome(process.env), 'kube', modulesVersion());
