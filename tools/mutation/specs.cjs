// All specs of the core under test as one file of mocha's. What kills most in the shortest time first: the run of a
// mutant ends with the first test that fails. SLUICE_NEAR leaves out what is not next to the core, and the properties,
// which cost most.
const { existsSync, readdirSync } = require('node:fs');
const { createRequire } = require('node:module');
const { join } = require('node:path');

const load = createRequire(__filename);
load('./source.cjs').useJestWords();
const root = join(__dirname, '../..');
const core = join(root, 'services', process.env.SLUICE_CORE, 'src/core');
const scenarios = join(root, 'test/scenarios');
const PROPERTIES = 'properties.spec.ts';
/** Draws lives until it has met each kind of answer: too many to be drawn for each mutant. */
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
