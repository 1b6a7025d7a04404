import { runCommand } from './command.js';

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
