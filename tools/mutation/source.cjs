// Lets Node.js load the sources directly, once for all mutants. A mutant then costs only its tests, and no loading of
// modules. The specs use Jest's globals. mocha provides describe, it and the hooks, and the others come from Jest's own
// packages.
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

/** As in tools/jest-resolver.cjs: first-party imports name the compiled file, and resolve to its source. */
const resolve = Module._resolveFilename;
Module._resolveFilename = (request, parent, ...rest) => {
  const library = /^#libs\/([^/]+)(?:\/(lean))?$/.exec(request);
  if (library !== null) return join(root, 'libs', library[1], 'src', `${library[2] ?? 'index'}.ts`);
  const isOurs = parent?.filename?.endsWith('.ts') && /^\.{1,2}\/.*\.js$/.test(request);
  return resolve(isOurs ? `${request.slice(0, -'.js'.length)}.ts` : request, parent, ...rest);
};

for (const file of product.setupFiles) require(file.replace('<rootDir>', root));
// A failing property has killed the mutant, so its smallest counterexample does not matter. Few runs, because each
// mutant pays for them.
fc.configureGlobal({ ...fc.readConfigureGlobal(), endOnFailure: true });
process.env.LIVES ??= '6';

/** mocha adds its globals to the files that it loads, after this one. */
exports.useJestWords = () => {
  Object.assign(globalThis, { expect, test: globalThis.it, beforeAll: globalThis.before, afterAll: globalThis.after });
  for (const word of ['describe', 'it']) globalThis[word].each ??= bind(globalThis[word]);
};
