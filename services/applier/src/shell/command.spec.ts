import { runCommand, SIGNAL_TURN_MS } from './command.js';
import { NetworkTools } from './backends/network/tools.js';

const limits = (timeoutMs = 20_000) => ({ root: '/', timeoutMs, ending: new AbortController().signal });

test('all that a command said before its end is heard, also where many end at once', async () => {
  const lines = Array.from({ length: 200 }, (_, i) => `line ${i}\n`).join('');
  const results = await Promise.all(Array.from({ length: 60 }, () => runCommand(['printf', '%s', lines], limits())));
  expect(results.filter(({ passed, output }) => !passed || output !== lines)).toEqual([]);
});

test('what a command leaves running behind it is not waited for', async () => {
  const { passed, output } = await runCommand(['sh', '-c', 'echo said; sleep 600 & echo $!'], limits());
  const [said, pid] = output.split('\n');
  process.kill(Number(pid), 'SIGKILL');
  expect([passed, said]).toEqual([true, 'said']);
});

test.each([
  ['a command', async () => (await runCommand(['sh', '-c', 'kill -TERM $$'], limits())).passed],
  ['a tool of the network', async () => (await new NetworkTools({}).try(['sh', '-c', 'kill -TERM $$'])).code === 0],
])('who ended %s by a signal may end its applier first, and nothing is concluded', async (_what, run) => {
  const turn = new Promise((resolve) =>
    setTimeout(() => resolve('the turn of the signal for the applier'), SIGNAL_TURN_MS / 2),
  );
  const ended = run();
  expect(await Promise.race([turn, ended])).toBe('the turn of the signal for the applier');
  expect(await ended).toBe(false);
});

test('one that is ended because its applier stops is not waited for', async () => {
  const ending = new AbortController();
  const late = new Promise((resolve) => setTimeout(() => resolve('late'), 20_000).unref());
  const ended = runCommand(['sleep', '600'], { ...limits(600_000), ending: ending.signal });
  ending.abort();
  expect(await Promise.race([late, ended])).toMatchObject({ passed: false });
});
