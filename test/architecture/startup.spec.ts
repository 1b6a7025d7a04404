import { join } from 'node:path';
import { ROOT, run } from './tools.fixture.js';

/** What a command loads: packages, and libraries of Sluice such as `libs/contracts`. */
function loadedBy(...argv: readonly string[]): readonly string[] {
  const script = `
    process.argv = [process.execPath, 'sluice', ...${JSON.stringify(argv)}];
    process.on('exit', () => process.stderr.write(Object.keys(require.cache).join('\\n')));
    require(${JSON.stringify(join(ROOT, 'dist/cli/src/main.js'))});`;
  const { status, stderr } = run(process.execPath, ['-e', script]);
  expect(status).toBe(0);
  const parts = stderr
    .split('\n')
    .map((file) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? /dist\/(libs\/[^/]+)/.exec(file)?.[1]);
  return [...new Set(parts)].filter((part) => part !== undefined).sort();
}

test('help and mistyped commands wait for no library but the parser of the command line and its options', () => {
  expect(loadedBy('--help')).toEqual(['commander', 'libs/process', 'picocolors']);
  expect(loadedBy('apply', '--help')).toEqual(['commander', 'libs/process', 'picocolors']);
});
