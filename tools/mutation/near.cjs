// The specs beside the core under test as one: they share one loading of its modules.
const { readdirSync } = require('node:fs');
const { join } = require('node:path');

const folder = join(__dirname, '../../services', process.env.SLUICE_CORE, 'src/core');
for (const file of readdirSync(folder).sort()) {
  if (file.endsWith('.spec.ts') && file !== 'properties.spec.ts') describe(file, () => void require(join(folder, file)));
}
