// The scenarios, which play all the cores together, as one.
const { readdirSync } = require('node:fs');
const { join } = require('node:path');

const folder = join(__dirname, '../../test/scenarios');
for (const file of readdirSync(folder).sort()) if (file.endsWith('.spec.ts')) describe(file, () => void require(join(folder, file)));
