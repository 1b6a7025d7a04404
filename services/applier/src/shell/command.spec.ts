import { runCommand, SIGNAL_TURN_MS } from './command.js';
import { NetworkTools } from './backends/network/tools.js';

const limits = (timeoutMs = 20_000) => ({ root: '/', timeoutMs, ending: new AbortController().signal });

test('returns the whole output of a command, even if many end at once', async () => {
  const lines = Array.from({ length: 200 }, (_, i) => `line ${i}\n`).join('');
  const results = await Promise.all(Array.from({ length: 60 }, () => runCommand(['printf', '%s', lines], limits())));
  expect(results.filter(({ passed, output }) => !passed || output !== lines)).toEqual([]);
});

test('a reason has the last lines of the output as one, without colours', async () => {
  const script = String.raw`printf 'a: \033[31mno\033[0m such file\r\n\n  b: failed\n' >&2; exit 3`;
  const { reason } = await runCommand(['sh', '-c', script], limits());
  expect(reason).toBe('sh ended with 3: a: no such file; b: failed');
});

test('a command gets the environment without the settings of the applier, which have credentials', async () => {
  const before = { ...process.env };
  Object.assign(process.env, { NATS_PASSWORD: 'secret', SLUICE_TOKEN: 'secret', OTHER: 'kept' });
  try {
    const { output } = await runCommand(['env'], limits());
    const names = output.split('\n').map((line) => line.split('=')[0]);
    expect(names.filter((name) => /^(NATS|SLUICE)_/.test(name ?? ''))).toEqual([]);
    expect([names.includes('PATH'), output.includes('OTHER=kept')]).toEqual([true, true]);
  } finally {
    process.env = before;
  }
});

test('does not wait for processes that a command leaves running', async () => {
  const { passed, output } = await runCommand(['sh', '-c', 'echo said; sleep 600 & echo $!'], limits());
  const [line, pid] = output.split('\n');
  process.kill(Number(pid), 'SIGKILL');
  expect([passed, line]).toEqual([true, 'said']);
});

test.each([
  ['a command', async () => (await runCommand(['sh', '-c', 'kill -TERM $$'], limits())).passed],
  ['a network tool', async () => (await new NetworkTools({}).try(['sh', '-c', 'kill -TERM $$'])).code === 0],
])('draws no conclusion if a signal ended %s, because the applier may be ending too', async (_what, run) => {
  const turn = new Promise((resolve) =>
    setTimeout(() => resolve('the turn of the signal for the applier'), SIGNAL_TURN_MS / 2),
  );
  const ended = run();
  expect(await Promise.race([turn, ended])).toBe('the turn of the signal for the applier');
  expect(await ended).toBe(false);
});

test('does not wait for a command that was ended because its applier stops', async () => {
  const ending = new AbortController();
  const late = new Promise((resolve) => setTimeout(() => resolve('late'), 20_000).unref());
  const ended = runCommand(['sleep', '600'], { ...limits(600_000), ending: ending.signal });
  ending.abort();
  expect(await Promise.race([late, ended])).toMatchObject({ passed: false });
});
