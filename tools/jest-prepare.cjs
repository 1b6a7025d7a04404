// Before the first test: what is missing on a new machine is built, for the time of a test or a hook is not meant for
// that. What takes minutes is built while the tests that do not need it run, which run first (jest-order.cjs);
// jest-end.cjs ends it.
const { spawn, spawnSync } = require('node:child_process');
const { existsSync } = require('node:fs');
const { join } = require('node:path');

const main = join(__dirname, '../dist/libs/testing/src/prepare/main.js');

module.exports = async ({ testPathPatterns }) => {
  if (!existsSync(main)) return;
  spawnSync(process.execPath, [main, 'first'], { stdio: 'inherit' });
  const isWhole = (testPathPatterns?.patterns ?? []).length === 0;
  if (isWhole) globalThis.preparing = spawn(process.execPath, [main, 'rest'], { stdio: 'inherit', detached: true });
};
