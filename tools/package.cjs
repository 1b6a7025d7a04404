// npm run package [-- --out DIR] [--bundle-only]: builds the applier for installation. Writes to build/:
//   applier.cjs                     one file, for any Node.js >= 22
//   node_modules                    a package that preserves ACLs and extended attributes, for this platform
//   sluice-applier_<version>_all.deb  the same with a systemd unit and its drop-ins (needs Debian's dpkg-deb)
const { spawnSync } = require('node:child_process');
const {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { build } = require('esbuild');

const root = join(__dirname, '..');
const { version, description, engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const leastNode = Number(/^>=(\d+)$/.exec(engines.node)[1]);
/** An older Node.js loads the file, and fails only in the middle of a change. */
const refuseOlder = `if (parseInt(process.versions.node, 10) < ${leastNode}) {
  process.stderr.write('sluice-applier needs Node.js ${leastNode} or newer; ' + process.execPath + ' is ' + process.versions.node + '\\n');
  process.exit(1);
}`;
const at = process.argv.indexOf('--out');
const out = at < 0 ? join(root, 'build') : process.argv[at + 1];

/**
 * Our own modules do nothing when they are loaded, except one. So what the applier does not use is left out, above all
 * Nest.
 */
const own = {
  name: 'own',
  setup(bundle) {
    bundle.onResolve({ filter: /^#libs\// }, ({ path }) => {
      const [, library, door = 'index'] = path.split('/');
      return { path: join(root, 'libs', library, 'src', `${door}.ts`), sideEffects: false };
    });
    bundle.onResolve({ filter: /^\.\.?\// }, async ({ path, importer, resolveDir, kind, pluginData }) => {
      if (pluginData === own || importer.includes('node_modules')) return undefined;
      const found = await bundle.resolve(path, { importer, resolveDir, kind, pluginData: own });
      return { ...found, sideEffects: found.path.endsWith('lean-start.ts') };
    });
  },
};

async function bundleApplier(file) {
  const { warnings } = await build({
    entryPoints: [join(root, 'services/applier/src/main.ts')],
    outfile: file,
    bundle: true,
    platform: 'node',
    target: `node${leastNode}`,
    tsconfigRaw: '{}',
    plugins: [own],
    // Only used by services. If the applier starts to use one of them, the check below fails.
    define: { SLUICE_VERSION: JSON.stringify(version) },
    external: ['koffi', '@nestjs/*', '@kubernetes/*', 'reflect-metadata', 'rxjs'],
    banner: {
      js: `// Sluice's applier ${version}, Apache-2.0. Made by npm run package; the licences of what is in it stand in its source.\n${refuseOlder}`,
    },
    legalComments: 'inline',
    logLevel: 'error',
  });
  if (warnings.length > 0) throw new Error(`the bundle has warnings: ${warnings.map(({ text }) => text).join('; ')}`);
  const needs = [
    ...readFileSync(file, 'utf8').matchAll(/\brequire\("(@nestjs|@kubernetes|reflect-metadata|rxjs)[^"]*"\)/g),
  ].map(([text]) => text);
  if (needs.length > 0) throw new Error(`the bundle needs packages that are not in it: ${needs.join(', ')}`);
}

/**
 * Compiled code cannot be in that file. Node.js finds it next to it. Without it, the applier logs a warning at its
 * start.
 */
function compiledPackages(to) {
  const from = join(root, 'node_modules');
  const platforms = readdirSync(join(from, '@koromix')).filter((name) => name.startsWith('koffi-linux-'));
  if (platforms.length === 0) throw new Error('@koromix/koffi-linux-… is not installed: run npm ci on Linux');
  for (const path of [
    'package.json',
    'LICENSE.txt',
    'index.cjs',
    'src/koffi/index.cjs',
    'src/koffi/src/static.cjs',
    'src/koffi/src/trampolines.cjs',
  ])
    cpSync(join(from, 'koffi', path), join(to, 'koffi', path));
  for (const name of platforms) cpSync(join(from, '@koromix', name), join(to, '@koromix', name), { recursive: true });
}

function debianPackage(bundle) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-package-'));
  try {
    chmodSync(folder, 0o755);
    const put = (path, text, mode = 0o644) => {
      mkdirSync(join(folder, path, '..'), { recursive: true, mode: 0o755 });
      writeFileSync(join(folder, path), text, { mode });
    };
    const from = (path) => readFileSync(join(root, 'deploy/applier', path), 'utf8');
    put('usr/lib/sluice/applier.cjs', readFileSync(bundle));
    compiledPackages(join(folder, 'usr/lib/sluice/node_modules'));
    put('usr/bin/sluice-applier', '#!/bin/sh\nexec node /usr/lib/sluice/applier.cjs "$@"\n', 0o755);
    put('usr/lib/systemd/system/sluice-applier.service', from('sluice-applier.service'));
    put('etc/default/sluice-applier', from('default'), 0o640);
    for (const name of ['credentials.conf', 'setuid.conf']) put(`usr/share/sluice/${name}`, from(name));
    cpSync(join(root, 'deploy/applier/backends'), join(folder, 'usr/share/sluice/backends'), { recursive: true });
    put('usr/share/doc/sluice-applier/copyright', readFileSync(join(root, 'LICENSE')));
    put('DEBIAN/control', from('control').replaceAll('@version@', version).replaceAll('@description@', description));
    put('DEBIAN/conffiles', '/etc/default/sluice-applier\n');
    for (const script of ['postinst', 'prerm', 'postrm']) put(`DEBIAN/${script}`, from(script), 0o755);
    const deb = join(out, `sluice-applier_${version}_all.deb`);
    const { status, error, stderr } = spawnSync('dpkg-deb', ['--root-owner-group', '--build', folder, deb], {
      encoding: 'utf8',
    });
    if (error?.code === 'ENOENT')
      throw new Error(
        'there is no dpkg-deb here, which makes the Debian package (Debian: apt-get install dpkg); applier.cjs is made',
      );
    if (status !== 0) throw new Error(`dpkg-deb failed: ${stderr.trim()}`);
    return deb;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function main() {
  mkdirSync(out, { recursive: true });
  const bundle = join(out, 'applier.cjs');
  await bundleApplier(bundle);
  compiledPackages(join(out, 'node_modules'));
  process.stdout.write(`${bundle}\n`);
  if (!process.argv.includes('--bundle-only')) process.stdout.write(`${debianPackage(bundle)}\n`);
}

main().catch((error) => {
  process.stderr.write(`package: ${error.message}\n`);
  process.exitCode = 1;
});
