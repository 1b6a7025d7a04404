import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { until } from '#libs/testing';
import { ENDING_WITH_US, NetworkTools } from './tools.js';

const isGone = (pid: string): boolean =>
  !existsSync(`/proc/${pid}`) || readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');

test('a slow tool ends with the process that ran it, even after a kill -9', async () => {
  const argv = JSON.stringify([...ENDING_WITH_US, 'sh', '-c', 'echo $$; exec sleep 60']);
  const parent = spawn(
    process.execPath,
    [
      '-e',
      `const [c, ...r] = ${argv}; require('node:child_process').spawn(c, r, { stdio: ['ignore', 1, 'ignore'] }); setInterval(() => {}, 1000);`,
    ],
    { stdio: ['ignore', 'pipe', 'ignore'] },
  );
  let pid = '';
  parent.stdout.on('data', (chunk: Buffer) => (pid += chunk.toString().trim()));
  await until(() => pid !== '', 'the child has printed its pid');
  expect(isGone(pid)).toBe(false);
  parent.kill('SIGKILL');
  await until(() => isGone(pid), 'the child has ended');
});

test('the error of a failed tool has its name and output, and a tool that hangs is killed', async () => {
  const tools = new NetworkTools({});
  await expect(tools.run(['sh', '-c', 'echo wrong >&2; exit 3'])).rejects.toThrow(
    'sh -c echo wrong >&2; exit 3: wrong',
  );
  expect(await tools.try(['sleep', '60'], 50)).toMatchObject({ code: 1, error: 'was killed after 50 ms' });
  expect((await tools.try(['there-is-no-such-tool'])).error).toContain('ENOENT');
});
