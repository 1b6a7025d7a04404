// Mutation testing of one pure core, named by SLUICE_CORE: `npm run mutation -- scheduler` (run.cjs sets it).
const { join } = require('node:path');

const core = process.env.SLUICE_CORE;

/** @type {import('@stryker-mutator/api/core').PartialStrykerOptions} */
module.exports = {
  plugins: ['@stryker-mutator/mocha-runner', '@stryker-mutator/typescript-checker', join(__dirname, 'words.mjs')],
  // mocha loads the modules once for all mutants, and Jest would load them again for each: a mutant costs a tenth of a
  // second instead of five. Specs that start processes, and the simulation, are too slow to run for each mutant.
  testRunner: 'mocha',
  mochaOptions: { require: ['tools/mutation/source.cjs'], spec: ['tools/mutation/specs.cjs'] },
  mutate: [`services/${core}/src/core/**/*.ts`, '!**/*.spec.ts', '!**/*.fixture.ts', '!**/index.ts'],
  // Code that only runs when a module is loaded (tables, lists of names) would need all specs again for each mutant.
  // Its bugs show when it is loaded.
  ignoreStatic: true,
  coverageAnalysis: 'perTest',
  // words.mjs: reasons and messages are texts for people. A spec that repeats them only proves that they were copied.
  ignorers: ['words'],
  concurrency: 1,
  timeoutMS: 20_000,
  timeoutFactor: 4,
  disableTypeChecks: false,
  // Files that specs of cores do not read are left out of the mutated copy.
  ignorePatterns: [
    '/.*',
    '/bench',
    '/bin',
    '/cli',
    '/dist',
    '/docs',
    '/reports',
    '/test/e2e',
    '/test/fuzz',
    '/test/simulation',
    '/test/architecture',
    '/test/deploy',
  ],
  tempDirName: '.cache/mutation',
  incrementalFile: `reports/mutation/${core}.incremental.json`,
  reporters: ['clear-text', 'progress-append-only', 'json', 'html'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false, reportMutants: true },
  jsonReporter: { fileName: `reports/mutation/${core}.json` },
  htmlReporter: { fileName: `reports/mutation/${core}.html` },
  allowEmpty: false,
  checkers: process.env.SLUICE_TYPED ? ['typescript'] : [],
  tsconfigFile: 'tsconfig.core.json',
  typescriptChecker: { prioritizePerformanceOverAccuracy: true },
};
