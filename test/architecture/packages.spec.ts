import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, run } from './tools.fixture.js';

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly overrides: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

const json = (file: string): unknown => JSON.parse(readFileSync(join(ROOT, file), 'utf8'));
const manifest = json('package.json') as Manifest;
const EXACT = /^(npm:[\w@/.-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/;

test('every package is pinned to one version', () => {
  const { dependencies, devDependencies, overrides } = manifest;
  const wanted = [dependencies, devDependencies, ...Object.values(overrides)].flatMap((one) => Object.entries(one));
  expect(wanted.length).toBeGreaterThan(20);
  expect(wanted.filter(([, version]) => !EXACT.test(version))).toEqual([]);
});

test('the lock file holds what package.json asks for, and no addresses', () => {
  const lock = json('package-lock.json') as { packages: Record<string, { version?: string; resolved?: string; dependencies?: object; devDependencies?: object }> };
  const { '': own, ...packages } = lock.packages;
  expect({ ...own?.dependencies, ...own?.devDependencies }).toEqual({ ...manifest.dependencies, ...manifest.devDependencies });
  expect(Object.values(packages).filter(({ resolved }) => resolved !== undefined)).toEqual([]);
});

test('the lock file is whole for `npm ci`, other platforms included: node tools/complete-lock.cjs', () => {
  const { packages } = json('package-lock.json') as { packages: Record<string, { optionalDependencies?: Record<string, string> }> };
  const optional = Object.values(packages).flatMap((one) => Object.keys(one.optionalDependencies ?? {}));
  expect(optional.filter((name) => !Object.keys(packages).some((path) => path.endsWith(`node_modules/${name}`)))).toEqual([]);
});

test('no tracked file names a package registry or a path of somebody\'s machine', () => {
  // Each pattern has a bracket somewhere, so that it does not find itself.
  const hosts = ['registry[.]npmjs[.]org', 'npmjs[.]com', 'proxy[.]golang[.]org', 'files[.]pythonhosted[.]org', 'static[.]crates[.]io'];
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
