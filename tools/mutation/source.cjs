// Lets Node load the sources as they stand, once for all mutants: what a mutant costs is then its tests alone, and no
// loading of modules. The specs keep Jest's words; mocha has describe, it and the hooks, and the rest of them come from
// Jest's own packages.
const { readFileSync } = require('node:fs');
const Module = require('node:module');
const { join } = require('node:path');
const { bind } = require('jest-each');
const { expect } = require('expect');
const { transformSync } = require('@swc/core');
const fc = require('fast-check');
const product = require('../../jest.config.cjs');

const root = join(__dirname, '../..');
const [, swc] = product.transform['^.+\\.ts$'];
Module._extensions['.ts'] = (module, filename) => {
  const { code } = transformSync(readFileSync(filename, 'utf8'), {
    ...swc,
    filename,
    swcrc: false,
    sourceMaps: 'inline',
  });
  module._compile(code, filename);
};

/** As in tools/jest-resolver.cjs: first-party imports name the compiled file, and its source stands there. */
const resolve = Module._resolveFilename;
Module._resolveFilename = (request, parent, ...rest) => {
  const library = /^#libs\/([^/]+)(?:\/(lean))?$/.exec(request);
  if (library !== null) return join(root, 'libs', library[1], 'src', `${library[2] ?? 'index'}.ts`);
  const isOurs = parent?.filename?.endsWith('.ts') && /^\.{1,2}\/.*\.js$/.test(request);
  return resolve(isOurs ? `${request.slice(0, -'.js'.length)}.ts` : request, parent, ...rest);
};

for (const file of product.setupFiles) require(file.replace('<rootDir>', root));
// A property that fails has killed the mutant: its smallest counterexample does not matter. Few lives, for each mutant
// pays for them.
fc.configureGlobal({ ...fc.readConfigureGlobal(), endOnFailure: true });
process.env.LIVES ??= '6';

/** mocha gives its words to the files that it loads, after this one. */
exports.useJestWords = () => {
  Object.assign(globalThis, { expect, test: globalThis.it, beforeAll: globalThis.before, afterAll: globalThis.after });
  for (const word of ['describe', 'it']) globalThis[word].each ??= bind(globalThis[word]);
};
