import { cli } from '../fakes.fixture.js';

describe('a command that connects to no existing server', () => {
  test.each([
    ['up', ['up', '--server', 'nats://prod:4222'], 'sluice up starts its own nats-server: leave out --server'],
    ['demo', ['--context', 'prod', 'demo'], 'sluice demo starts its own nats-server: leave out --context'],
    ['import', ['import', '-f', '-', '--creds', 'x'], 'sluice import works offline: leave out --creds'],
    [
      'actions',
      ['actions', '--tls-first', '--from', 'a', '--to', 'b'],
      'sluice actions works offline: leave out --tls-first',
    ],
  ])('refuses the flags for one, instead of ignoring them: %s', async (name, argv, message) => {
    expect(await cli(argv)).toEqual({ exit: 2, out: '', err: `error: ${message}\n` });
    expect((await cli([name, '--help'])).out).not.toMatch(/--server|connecting to NATS/);
  });

  test('may find them in the environment', async () => {
    expect((await cli(['import', '-f', '-'], undefined, { NATS_URL: 'nats://prod:4222' }, '')).err).not.toContain(
      'offline',
    );
  });
});

test.each(['apply', 'plan', 'import'])('%s names the flag that a file needs', async (command) => {
  const { exit, err } = await cli([command, 'motd.yaml'], {});
  expect([exit, err.split('\n')[0]]).toEqual([2, expect.stringContaining('Name each file or folder with -f')]);
});
