import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, run } from './tools.fixture.js';

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly overrides?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}
interface Lock {
  readonly packages: Readonly<
    Record<
      string,
      {
        readonly resolved?: string;
        readonly dependencies?: object;
        readonly devDependencies?: object;
        readonly optionalDependencies?: object;
      }
    >
  >;
}

const json = (file: string): unknown => JSON.parse(readFileSync(join(ROOT, file), 'utf8'));
/** The product's packages, and those that only mutation testing needs. */
const FOLDERS = ['.', 'tools/mutation'];
const manifestOf = (folder: string) => json(join(folder, 'package.json')) as Manifest;
const lockOf = (folder: string) => json(join(folder, 'package-lock.json')) as Lock;
const EXACT = /^(npm:[\w@/.-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/;

test.each(FOLDERS)('every package of %s is pinned to one version', (folder) => {
  const { dependencies = {}, devDependencies, overrides = {} } = manifestOf(folder);
  const wanted = [dependencies, devDependencies, ...Object.values(overrides)].flatMap((one) => Object.entries(one));
  expect(wanted.length).toBeGreaterThan(folder === '.' ? 20 : 1);
  expect(wanted.filter(([, version]) => !EXACT.test(version))).toEqual([]);
});

test.each(FOLDERS)('the lock file of %s holds what its package.json asks for, and no addresses', (folder) => {
  const { '': own, ...packages } = lockOf(folder).packages;
  expect({ ...own?.dependencies, ...own?.devDependencies }).toEqual({
    ...manifestOf(folder).dependencies,
    ...manifestOf(folder).devDependencies,
  });
  expect(Object.values(packages).filter(({ resolved }) => resolved !== undefined)).toEqual([]);
});

test.each(FOLDERS)(
  'the lock file of %s is whole for `npm ci`, other platforms included: node tools/complete-lock.cjs',
  (folder) => {
    const { packages } = lockOf(folder);
    const optional = Object.values(packages).flatMap((one) => Object.keys(one.optionalDependencies ?? {}));
    expect(
      optional.filter((name) => !Object.keys(packages).some((path) => path.endsWith(`node_modules/${name}`))),
    ).toEqual([]);
  },
);

test("no tracked file names a package registry or a path of somebody's machine", () => {
  // Each pattern has a bracket somewhere, so that it does not find itself.
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
  expect(status).toBe(1); // git's word for "found none"
});

/** The registry that this machine was given, if npm told it. */
function registryInUse(): readonly string[] {
  const url = process.env['npm_config_registry'];
  return url === undefined || !URL.canParse(url) ? [] : [new URL(url).host];
}
