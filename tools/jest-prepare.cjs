// Before the first test, builds what is missing on a new machine, because the timeouts of tests and hooks are too short
// for that. What takes minutes is built in the background while the tests that do not need it run first
// (jest-order.cjs). jest-end.cjs stops it.
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
