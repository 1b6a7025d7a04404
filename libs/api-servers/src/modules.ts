import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Everything here is of this version of Kubernetes. */
export const KUBE_VERSION = 'v1.36.3';

/** The same settings for all programs, because Go compiles again for others. */
export const GO_SETTINGS = { CGO_ENABLED: '0', GOWORK: 'off', GOFLAGS: '-trimpath -buildvcs=false -mod=readonly' };

/** The version as `kubectl version` and `/version` show it. */
export function versionFlags(): string {
  const of = 'k8s.io/component-base/version';
  const [, major, minor] = /v(\d+)\.(\d+)/.exec(KUBE_VERSION) as unknown as [string, string, string];
  return `-s -w -X ${of}.gitVersion=${KUBE_VERSION} -X ${of}.gitMajor=${major} -X ${of}.gitMinor=${minor}`;
}

/** The folder of the list of modules. It is next to the sources: the build contains only code. */
export function modulesFolder(): string {
  const here = __dirname.split(/[\\/]dist[\\/]/);
  return join(here.length > 1 ? join(here[0] as string, 'libs/api-servers/src') : __dirname, 'modules');
}

/** Why nothing can be built from here: an installation may have the code alone. */
export function whyNoModules(): string | undefined {
  const list = join(modulesFolder(), 'go.mod');
  return existsSync(list) ? undefined : `${list} is not in this installation: use a clone of the repository`;
}

/** A program that was built from another version or list of modules has another name. */
export function modulesVersion(): string {
  const digest = createHash('sha256');
  for (const file of ['go.mod', 'go.sum']) digest.update(readFileSync(join(modulesFolder(), file)));
  return `${KUBE_VERSION}-${digest.digest('hex').slice(0, 12)}`;
}
