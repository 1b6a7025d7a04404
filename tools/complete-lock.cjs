// Enters into package-lock.json the optional packages of other platforms. A registry that carries only this platform's makes npm leave
// them out, and `npm ci`, which wants the lock to be whole, then fails. What a name says of its platform is what npm needs to skip it here.
const { readFileSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');

const OS = ['aix', 'android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32'];
const CPU = {
  arm: 'arm',
  'arm-eabi': 'arm',
  'arm-gnueabihf': 'arm',
  'arm-musleabihf': 'arm',
  armv7: 'arm',
  arm64: 'arm64',
  ia32: 'ia32',
  loong64: 'loong64',
  ppc64: 'ppc64',
  ppc64le: 'ppc64',
  riscv64: 'riscv64',
  s390x: 's390x',
  x64: 'x64',
};

/** `…-linux-x64-musl` → what npm calls os, cpu and libc; undefined for a name that says nothing. */
function platformOf(name) {
  const found = new RegExp(`[-/](${OS.join('|')})-(.+)$`).exec(name);
  if (found === null) return undefined;
  const [, os, rest] = found;
  const machine = rest.replace(/-(gnu|musl|msvc)$/, '');
  if (CPU[machine] === undefined) return undefined;
  const libc = /-musl$|musleabihf$/.test(rest)
    ? { libc: ['musl'] }
    : /-gnu$|gnueabihf$/.test(rest) && os === 'linux'
      ? { libc: ['glibc'] }
      : {};
  return { cpu: [CPU[machine]], ...libc, os: [os] };
}

const file = join(__dirname, '../package-lock.json');
const lock = JSON.parse(readFileSync(file, 'utf8'));
const unknown = [];
for (const one of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(one.optionalDependencies ?? {})) {
    const path = `node_modules/${name}`;
    if (lock.packages[path] !== undefined) continue;
    const platform = platformOf(name);
    if (platform === undefined || !/^\d+\.\d+\.\d+[\w.-]*$/.test(version)) unknown.push(`${name}@${version}`);
    else lock.packages[path] = { version, ...platform, ...(one.dev ? { dev: true } : {}), optional: true };
  }
}
if (unknown.length > 0) {
  process.stderr.write(`cannot tell the platform or the version of ${unknown.join(', ')}: enter them by hand\n`);
  process.exitCode = 1;
}
const [root, ...paths] = Object.keys(lock.packages);
lock.packages = Object.fromEntries(
  [root, ...paths.sort((a, b) => a.localeCompare(b, 'en'))].map((path) => [path, lock.packages[path]]),
);
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
