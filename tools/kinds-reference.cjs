// npm run reference: writes docs/reference/kinds, a page for each kind. It uses the class of the kind (the meaning of
// each field) and the first manifest of that kind in examples/.
const { execFileSync } = require('node:child_process');
const { mkdirSync, rmSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { kindPages } = require('../dist/test/docs/kind-pages.js');

const root = join(__dirname, '..');
const folder = join(root, 'docs/reference/kinds');
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
for (const [file, text] of Object.entries(kindPages(root))) writeFileSync(join(folder, file), text);
execFileSync(join(root, 'node_modules/.bin/oxfmt'), [folder], { cwd: root });
