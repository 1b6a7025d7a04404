import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { until } from '#libs/testing';
import { Expressions } from './expressions.js';
import { CutShortError } from './probe-types.js';

const PROGRAM = join(__dirname, '../../../../../dist/services/applier/src/shell/probes/expression-main.js');
const object = (uid: string, size = 20_000): object => ({
  metadata: { uid },
  items: Array.from({ length: size }, (_, i) => i),
  text: 'a'.repeat(100),
});
const HOURS = 'object.items.all(a, object.items.all(b, object.items.exists(c, a + b + c >= 0)))';

let expressions: Expressions;
beforeAll(() => {
  expressions = new Expressions(PROGRAM);
});
afterAll(() => expressions.close());
const problem = (expression: string, about: object, timeoutMs = 60_000): Promise<string | undefined> =>
  expressions.problem(expression, about, timeoutMs);

test('an expression is true or false, or has no value', async () => {
  expect(await problem('size(object.items) == 20000', object('a'))).toBeUndefined();
  expect(await problem('size(object.items) == 1', object('a'))).toBe('it is false');
  expect(await problem('object.status.x == 1', object('a'))).toBe('no such key: status');
  expect(await problem('object.text', object('a'))).toBe('its value must be true or false, and it is neither');
});

/** Calls back until the work is done. Returns how often. */
async function ticksDuring(work: Promise<unknown>): Promise<number> {
  let ticks = 0;
  let isOver = false;
  const tick = (): void => {
    ticks += 1;
    if (!isOver) setImmediate(tick);
  };
  tick();
  await work;
  isOver = true;
  return ticks;
}

test.each([
  ['loops that would take hours', HOURS],
  ['a pattern that backtracks', 'object.text.matches("^(a+)+$") && object.text.matches("^(a+)+b$")'],
])('%s are stopped, and block nothing meanwhile', async (_, expression) => {
  const stopped = problem(expression, object('b'));
  expect(await ticksDuring(stopped)).toBeGreaterThan(1_000);
  expect(await stopped).toBe('it was stopped, because it takes more than 1 s');
  expect(await problem('size(object.items) == 20000', object('b'))).toBeUndefined();
});

test('what was stopped is not tried again for the same object for a while, and for another one it is', async () => {
  const why = 'it was stopped less than a minute ago, because it takes more than 1 s';
  expect(await problem(HOURS, object('b'))).toBe(why);
  expect(await problem(HOURS, object('b'))).toBe(why);
  expect(await problem(HOURS, object('c', 2))).toBeUndefined();
});

test('an expression that takes much memory is stopped, and its process ends, so that it gives the memory back', async () => {
  const huge = 'object.items.map(a, object.items.map(b, [a, b])).exists(a, size(a) == 0)';
  expect(await problem('true', object('d'))).toBeUndefined();
  const before = expressions.pid;
  expect(await problem(huge, object('d'))).toMatch(/^it was stopped, because it takes more than /);
  expect(await problem('size(object.items) == 20000', object('d'))).toBeUndefined();
  expect(expressions.pid).not.toBe(before);
});

test('kill -9 of its process is like an expression that takes too much, and the next one gets another process', async () => {
  expect(await problem('true', object('e'))).toBeUndefined();
  const pid = expressions.pid as number;
  process.kill(pid, 'SIGKILL');
  await until(() => expressions.pid !== pid, 'its end is noticed');
  expect(await problem('true', object('e'))).toBeUndefined();
  expect(expressions.pid).not.toBe(pid);
});

test('if the applier is killed while an expression is evaluated, the process of the expression ends, too', async () => {
  const script = `
    const { Expressions } = require(${JSON.stringify(join(dirname(PROGRAM), 'expressions.js'))});
    const expressions = new Expressions();
    expressions.problem('true', {}, 60_000).then(() => {
      void expressions.problem(${JSON.stringify(HOURS)}, { items: Array(20_000).fill(1) }, 60_000);
      console.log(expressions.pid);
    });`;
  const applier = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [pid] = (await once(applier.stdout, 'data')) as [Buffer];
  applier.kill('SIGKILL');
  await until(() => !existsSync(`/proc/${Number(pid)}`), 'it has ended');
});

test('a probe that had to wait for the expressions of others has not failed', async () => {
  const slow = problem(HOURS, object('f'));
  await expect(problem('true', object('g'), 50)).rejects.toThrow(CutShortError);
  expect(await slow).toBe('it was stopped, because it takes more than 1 s');
});

test('an object that no API server stores is refused', async () => {
  const about = { metadata: {}, text: 'a'.repeat(3 * 1_048_576) };
  expect(await problem('true', about)).toBe('the object has more than 2097152 bytes');
});
