// Runs TypeScript sources in a plain Node process, so that a spec can kill it: node run-ts.cjs FILE ARGS…
const { readFileSync } = require('node:fs');
const Module = require('node:module');
const { join, resolve } = require('node:path');
const { transformSync } = require('@swc/core');

const repository = resolve(__dirname, '../../../..');
const options = {
  jsc: {
    target: 'es2022',
    parser: { syntax: 'typescript', decorators: true },
    transform: { legacyDecorator: true, decoratorMetadata: true },
  },
  module: { type: 'commonjs' },
  sourceMaps: false,
};
Module._extensions['.ts'] = (module, file) =>
  module._compile(transformSync(readFileSync(file, 'utf8'), { ...options, filename: file }).code, file);

const found = Module._resolveFilename;
Module._resolveFilename = function resolveSource(request, parent, ...rest) {
  const library = /^#libs\/([^/]+)(?:\/(lean))?$/.exec(request);
  if (library !== null) return join(repository, 'libs', library[1], 'src', `${library[2] ?? 'index'}.ts`);
  if (request.startsWith('.') && request.endsWith('.js') && parent?.filename?.endsWith('.ts'))
    return found.call(this, `${request.slice(0, -3)}.ts`, parent, ...rest);
  return found.call(this, request, parent, ...rest);
};
require(resolve(process.argv[2]));
