// Nest and the NATS client's younger packages are ESM only: swc turns them into CommonJS for Jest.
const esm = [
  '@nestjs',
  '@nats-io',
  'canonicalize',
  'string-width',
  'strip-ansi',
  'ansi-regex',
  'get-east-asian-width',
  '@kubernetes',
  '@marcbachmann',
  'openid-client',
  'oauth4webapi',
  'jose',
  'socks-proxy-agent',
  'agent-base',
  'jsonpath-plus',
  'js-yaml',
  'rfc4648',
];
const swc = (syntax) => [
  '@swc/jest',
  {
    jsc: {
      target: 'es2022',
      parser: { syntax, decorators: true },
      transform: { legacyDecorator: true, decoratorMetadata: true },
      keepClassNames: true,
    },
    module: { type: 'commonjs' },
  },
];
/** @type {import('jest').Config} */
module.exports = {
  testEnvironment: 'node',
  roots: ['<rootDir>/libs', '<rootDir>/services', '<rootDir>/cli', '<rootDir>/test'],
  testRegex: '\\.spec\\.ts$',
  moduleFileExtensions: ['ts', 'js', 'cjs', 'mjs', 'json'],
  transform: { '^.+\\.ts$': swc('typescript'), '^.+\\.m?js$': swc('ecmascript') },
  transformIgnorePatterns: [`/node_modules/(?!(${esm.join('|')})/)`],
  moduleNameMapper: {
    '^#libs/([^/]+)$': '<rootDir>/libs/$1/src/index.ts',
    '^#libs/([^/]+)/lean$': '<rootDir>/libs/$1/src/lean.ts',
  },
  resolver: '<rootDir>/tools/jest-resolver.cjs',
  reporters: ['default', '<rootDir>/tools/closing-line-reporter.cjs'],
  globalSetup: '<rootDir>/tools/jest-prepare.cjs',
  globalTeardown: '<rootDir>/tools/jest-end.cjs',
  testSequencer: '<rootDir>/tools/jest-order.cjs',
  setupFiles: ['<rootDir>/tools/jest-setup.cjs'],
  // Two suites at a time: many of them wait for processes of their own most of the time; in a worker that is replaced
  // when it has grown.
  maxWorkers: 2,
  workerIdleMemoryLimit: '400MB',
  // Ends a test that hangs. It is long because machines are busy, and no test asserts a time.
  testTimeout: 300_000,
  // A test that fails half-way may leave a process or a socket behind; the run must end all the same.
  forceExit: true,
};
