import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectTarget } from './nats-context.js';

let config: string;
beforeEach(() => {
  config = mkdtempSync(join(tmpdir(), 'sluice-context-'));
  mkdirSync(join(config, 'nats', 'context'), { recursive: true });
  mkdirSync(join(config, 'ada'));
  for (const creds of ['ada/prod.creds', 'other.creds']) writeFileSync(join(config, creds), '');
  writeFileSync(
    join(config, 'nats', 'context', 'prod.json'),
    JSON.stringify({ url: 'tls://p1:4222,tls://p2:4222', creds: '~/prod.creds', user: '', description: 'x' }),
  );
  writeFileSync(
    join(config, 'nats', 'context', 'lab.json'),
    JSON.stringify({ url: 'lab:4222', user: 'ada', password: 'secret', token: 't' }),
  );
  writeFileSync(join(config, 'nats', 'context', 'broken.json'), '{');
});
afterEach(() => rmSync(config, { recursive: true }));

const target = (flags: Parameters<typeof connectTarget>[0], env: NodeJS.ProcessEnv = {}) =>
  connectTarget(flags, { XDG_CONFIG_HOME: config, HOME: join(config, 'ada'), ...env });
const select = (name: string): void => writeFileSync(join(config, 'nats', 'context.txt'), `${name}\n`);

test('with nothing said it is this machine', () => {
  expect(target({})).toEqual({ servers: 'nats://127.0.0.1:4222', from: 'the default' });
});

test('NATS_URL, and --server before it', () => {
  expect(target({}, { NATS_URL: 'demo:4222' })).toEqual({ servers: 'nats://demo:4222', from: 'NATS_URL' });
  expect(target({ server: 'nats://a, b' }, { NATS_URL: 'demo:4222' })).toEqual({
    servers: 'nats://a,nats://b',
    from: '--server',
  });
});

test('the selected context counts when neither is there', () => {
  select('prod');
  expect(target({})).toEqual({
    servers: 'tls://p1:4222,tls://p2:4222',
    creds: join(config, 'ada', 'prod.creds'),
    from: 'nats context prod (selected)',
  });
  expect(target({}, { NATS_URL: 'nats://demo:4222' }).from).toBe('NATS_URL');
});

test('a context that is named comes before NATS_URL and the selected one', () => {
  select('prod');
  expect(target({ context: 'lab' }, { NATS_URL: 'nats://demo:4222' })).toEqual({
    servers: 'nats://lab:4222',
    user: 'ada',
    pass: 'secret',
    token: 't',
    from: 'nats context lab',
  });
});

test('--creds replaces those of the context', () => {
  const creds = join(config, 'other.creds');
  expect(target({ context: 'prod', creds }).creds).toBe(creds);
  expect(() => target({ creds: '/none.creds' })).toThrow('credentials file /none.creds not found');
});

test('a context that is missing or broken is named, with those that there are', () => {
  expect(() => target({ context: 'none' })).toThrow(
    /nats context none: .*none\.json not found; known contexts: broken, lab, prod/,
  );
  expect(() => target({ context: 'broken' })).toThrow(/broken\.json is not valid JSON/);
});
