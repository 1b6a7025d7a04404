import { cli } from '../fakes.fixture.js';

test('a file that is not there is named with its flag', async () => {
  const argv = ['actions', '--from', '/dev/null', '--to', '/nowhere.yaml'];
  expect(await cli(argv)).toMatchObject({ exit: 2, err: 'error: --to /nowhere.yaml: no such file or folder\n' });
});

test('both sides from stdin are refused: the second one would be empty', async () => {
  const text = 'apiVersion: sluice.dev/v1alpha1\nkind: Probe\nmetadata: {name: p}\nspec: {}\n';
  expect(await cli(['actions', '--from', '-', '--to', '-'], undefined, {}, text)).toMatchObject({
    exit: 2,
    err: 'error: --from and --to cannot both be stdin: name a file for one of them\n',
  });
});
