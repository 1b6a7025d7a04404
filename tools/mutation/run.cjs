// npm run mutation -- CORE [--near] [--typed] [options of Stryker, such as --mutate services/CORE/src/core/FILE.ts or
// --incremental]
// --near runs only the specs next to the core, which is faster. --incremental then runs the others on the survivors.
// --typed skips mutants that do not compile, about half of them: fewer to run, and no survivors in guards that only
// satisfy the compiler. It has separate packages (package.json here), which are installed on first use and are not in
// the lock file of the product.
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
