// All specs of the core under test as one file for mocha. Specs that kill many mutants in a short time come first,
// because the run of a mutant ends with the first failing test. SLUICE_NEAR leaves out specs that are not next to the
// core, and the properties, which are the most expensive.
const { existsSync, readdirSync } = require('node:fs');
const { createRequire } = require('node:module');
const { join } = require('node:path');

const load = createRequire(__filename);
load('./source.cjs').useJestWords();
const root = join(__dirname, '../..');
const core = join(root, 'services', process.env.SLUICE_CORE, 'src/core');
const scenarios = join(root, 'test/scenarios');
const PROPERTIES = 'properties.spec.ts';
/** Generates fleets until it has seen each kind of answer, which takes too long for each mutant. */
const TOO_LONG = ['admission.spec.ts'];

const specsOf = (folder) =>
  readdirSync(folder)
    .filter((file) => file.endsWith('.spec.ts'))
    .sort();
const tell = (folder, files) => files.forEach((file) => describe(file, () => void load(join(folder, file))));

tell(
  core,
  specsOf(core).filter((file) => file !== PROPERTIES),
);
if (!process.env.SLUICE_NEAR) {
  tell(
    scenarios,
    specsOf(scenarios).filter((file) => !TOO_LONG.includes(file)),
  );
  if (existsSync(join(core, PROPERTIES))) tell(core, [PROPERTIES]);
}
