// npm run mutation -- CORE [--near] [--typed] [options of Stryker, such as --mutate services/CORE/src/core/FILE.ts or
// --incremental]
// --near tries the specs next to the core only, which is quicker; --incremental then asks the others about what lived.
// --typed leaves out what the compiler refuses, about every second mutant: fewer to try, and no guards among the
// survivors that types ask for. Its packages are its own (package.json here), installed on first use: the product's
// lock file does not know them.
const { spawnSync } = require('node:child_process');
const { existsSync, readdirSync } = require('node:fs');
const { join } = require('node:path');

const root = join(__dirname, '../..');
const cores = readdirSync(join(root, 'services')).filter((name) =>
  existsSync(join(root, 'services', name, 'src/core')),
);
const [core, ...rest] = process.argv.slice(2);
const options = rest.filter((option) => option !== '--near' && option !== '--typed');
const given = (option) => (rest.includes(option) ? '1' : '');

function run(command, args, cwd, env = {}) {
  const { status } = spawnSync(command, args, { cwd, stdio: 'inherit', env: { ...process.env, ...env } });
  if (status !== 0) process.exit(status ?? 1);
}

if (!cores.includes(core)) {
  process.stderr.write(`which core? npm run mutation -- ${cores.join('|')} [--near] [options of Stryker]\n`);
  process.exit(2);
}
const stryker = join(__dirname, 'node_modules/@stryker-mutator/core/bin/stryker.js');
if (!existsSync(stryker)) run('npm', ['ci', '--no-audit', '--no-fund'], __dirname);
run(process.execPath, [stryker, 'run', join(__dirname, 'stryker.config.cjs'), ...options], root, {
  SLUICE_CORE: core,
  SLUICE_NEAR: given('--near'),
  SLUICE_TYPED: given('--typed'),
});
