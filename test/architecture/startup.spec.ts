import { join } from 'node:path';
import { ROOT, run } from './tools.fixture.js';

/** What a command loads: packages, and libraries of Sluice such as `libs/contracts`. */
function loadedBy(argv: readonly string[], exitCode = 0): readonly string[] {
  const script = `
    process.argv = [process.execPath, 'sluice', ...${JSON.stringify(argv)}];
    process.on('exit', () => process.stderr.write(Object.keys(require.cache).join('\\n')));
    require(${JSON.stringify(join(ROOT, 'dist/cli/src/main.js'))});`;
  const { status, stderr } = run(process.execPath, ['-e', script]);
  expect(status).toBe(exitCode);
  const parts = stderr
    .split('\n')
    .map((file) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? /dist\/(libs\/[^/]+)/.exec(file)?.[1]);
  return [...new Set(parts)].filter((part) => part !== undefined).sort();
}

test('help and mistyped commands load no library except the parser of the command line and its options', () => {
  expect(loadedBy(['--help'])).toEqual(['commander', 'libs/process', 'picocolors']);
  expect(loadedBy(['apply', '--help'])).toEqual(['commander', 'libs/process', 'picocolors']);
});

const CLIENT = [
  '@bufbuild/protobuf',
  '@nats-io/jetstream',
  '@nats-io/nats-core',
  '@nats-io/nkeys',
  '@nats-io/nuid',
  '@nats-io/transport-node',
  'commander',
  'ipaddr.js',
  'libs/client',
  'libs/contracts',
  'libs/engine',
  'libs/manifests',
  'libs/nats',
  'libs/process',
  'picocolors',
  'tweetnacl',
];

test('a command that connects to a fleet loads no logger, no validators, and nothing that only services need', () => {
  expect(loadedBy(['status', '--server', 'nats://127.0.0.1:1'], 6)).toEqual([...CLIENT, 'string-width'].sort());
});

test('an applier loads no validators, and nothing that only services need', () => {
  // It ends because it has no node name: after loading, and before it logs.
  expect(loadedBy(['applier'], 2)).toEqual([...CLIENT, 'canonicalize'].sort());
});
