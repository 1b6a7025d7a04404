// npm run manifests: writes deploy/manifests/sluice.yaml, the chart with its default values, for users without helm.
// The definitions stay in deploy/crds.
const { execFileSync } = require('node:child_process');
const { mkdirSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { findHelm } = require('../dist/libs/testing/src/index.js');
const { manifestsOf } = require('../dist/test/deploy/manifests.js');

const root = join(__dirname, '..');

findHelm()
  .then((helm) => {
    mkdirSync(join(root, 'deploy/manifests'), { recursive: true });
    writeFileSync(
      join(root, 'deploy/manifests/sluice.yaml'),
      manifestsOf((args) => execFileSync(helm, args, { cwd: root, encoding: 'utf8' })),
    );
  })
  .catch((error) => {
    process.stderr.write(`manifests: ${error.message}\n`);
    process.exitCode = 1;
  });
