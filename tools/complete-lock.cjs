// Completes package-lock.json after npm has installed a new package:
// - Adds missing hashes from the registry. If the registry lacks a version of a package for another platform, npm
//   leaves out its hash or the whole package. Then pin a version that the registry has completely.
// - Removes `engines`: npm compares them with the Node.js that runs npm, but the project runs on the one in
//   node_modules/.bin (docs/design/node-versions.md). test/architecture/packages.spec.ts compares them instead.
const { execFileSync } = require('node:child_process');
const { readFileSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');

const file = join(__dirname, '../package-lock.json');
const lock = JSON.parse(readFileSync(file, 'utf8'));

async function main() {
  const registry = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim();
  for (const [path, one] of Object.entries(lock.packages)) {
    if (path === '') continue;
    delete one.engines;
    one.integrity ??= (await manifest(registry, nameOf(path), one.version)).dist.integrity;
    for (const [name, version] of Object.entries(one.optionalDependencies ?? {})) {
      if (lock.packages[`node_modules/${name}`] !== undefined) continue;
      const { dist, cpu, libc, os } = await manifest(registry, name, version);
      const dev = one.dev ? { dev: true } : {};
      lock.packages[`node_modules/${name}`] = {
        version,
        integrity: dist.integrity,
        cpu,
        ...dev,
        libc,
        optional: true,
        os,
      };
    }
  }
  const [root, ...paths] = Object.keys(lock.packages);
  lock.packages = Object.fromEntries(
    [root, ...paths.sort((a, b) => a.localeCompare(b, 'en'))].map((path) => [path, lock.packages[path]]),
  );
  writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
}

const nameOf = (path) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);

async function manifest(registry, name, version) {
  const answer = await fetch(new URL(`${name}/${version}`, registry));
  if (answer.ok) return answer.json();
  throw new Error(`the registry has no ${name}@${version}: pin a version of which it has every platform's package`);
}

main().catch((error) => {
  process.stderr.write(`complete-lock: ${error.message}\n`);
  process.exitCode = 1;
});
