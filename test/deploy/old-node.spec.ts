import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const SLUICE = join(__dirname, '../../bin/sluice');

const withNode = (version: string): ReturnType<typeof spawnSync> => {
  const pretends = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`;
  const args = ['--import', `data:text/javascript,${encodeURIComponent(pretends)}`, SLUICE, '--version'];
  return spawnSync(process.execPath, args, { encoding: 'utf8' });
};

test.each(['20.20.2', '0.10.48'])('with Node.js %s, sluice says in one sentence which version it needs', (version) => {
  expect(withNode(version)).toMatchObject({
    status: 1,
    stdout: '',
    stderr: `sluice needs Node.js 22 or newer; ${process.execPath} is ${version}\n`,
  });
});

test.each(['22.0.0', '24.21.0'])('with Node.js %s, it runs', (version) => {
  expect(withNode(version)).toMatchObject({ status: 0, stderr: '' });
});
