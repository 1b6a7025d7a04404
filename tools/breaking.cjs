// npm run breaking: checks that the messages in proto/ can still be read by released versions. Compares with the last
// release (a tag v…) or, before the first one, with the commit where this branch left main. Works offline, in a
// worktree and in a fresh clone. In a clone without that history, it says so and passes.
const { execFileSync, spawnSync } = require('node:child_process');
const { mkdtempSync, rmSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');

const root = join(__dirname, '..');
const git = (...args) => spawnSync('git', args, { cwd: root, encoding: 'utf8' });
const firstLine = ({ status, stdout }) => (status === 0 ? stdout.split('\n')[0] : '');

const base =
  firstLine(git('describe', '--tags', '--abbrev=0', '--match', 'v[0-9]*')) ||
  firstLine(git('merge-base', 'HEAD', 'origin/main')) ||
  firstLine(git('merge-base', 'HEAD', 'main'));
if (base === '') {
  process.stdout.write('breaking: no release and no main in this clone, nothing to compare with\n');
  process.exit(0);
}

const folder = mkdtempSync(join(tmpdir(), 'sluice-proto-'));
const archive = execFileSync('git', ['archive', base, 'proto', 'buf.yaml'], { cwd: root });
execFileSync('tar', ['-x', '-C', folder], { input: archive });
const { status } = spawnSync(join(root, 'node_modules/.bin/buf'), ['breaking', '--against', folder], {
  cwd: root,
  stdio: 'inherit',
});
rmSync(folder, { recursive: true });
process.stdout.write(status === 0 ? `breaking: nothing since ${base.slice(0, 12)}\n` : '');
process.exitCode = status ?? 1;
