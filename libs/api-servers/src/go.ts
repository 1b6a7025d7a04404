import { spawnSync } from 'node:child_process';

/** The version that the lists of modules need. */
const OLDEST = [1, 26] as const;
const WAY = `install Go ${OLDEST.join('.')} or newer (https://go.dev/dl)`;

/** Why `what` cannot be built with Go here; undefined if it can. */
export function whyNoGo(what: string): string | undefined {
  const { status, stdout } = spawnSync('go', ['env', 'GOVERSION'], { encoding: 'utf8' });
  const found = /go(\d+)\.(\d+)/.exec(stdout ?? '');
  if (status !== 0 || found === null) return `there is no Go in PATH to build ${what} with: ${WAY}`;
  const [major, minor] = [Number(found[1]), Number(found[2])];
  const isNew = major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
  return isNew
    ? undefined
    : `Go is ${major}.${minor}, and ${what} needs ${OLDEST.join('.')} or newer to be built: ${WAY}`;
}
