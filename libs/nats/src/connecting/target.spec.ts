import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nkeys } from '@nats-io/nats-core';
import { testAuthority } from '#libs/testing';
import { connectTarget, type Target } from './target.js';

const SEED = new TextDecoder().decode(nkeys.createUser().getSeed());
const CREDS = `-----BEGIN NATS USER JWT-----\neyJ0.x.y\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n${SEED}\n------END USER NKEY SEED------\n`;

let config: string;
beforeEach(() => {
  config = mkdtempSync(join(tmpdir(), 'sluice-context-'));
  mkdirSync(join(config, 'nats', 'context'), { recursive: true });
  mkdirSync(join(config, 'ada'));
  for (const creds of ['ada/prod.creds', 'other.creds']) writeFileSync(join(config, creds), CREDS);
  writeContext('prod', { url: 'tls://p1:4222,tls://p2:4222', creds: '~/prod.creds', user: '', description: 'x' });
  writeContext('lab', { url: 'lab:4222', user: 'ada', password: 'secret', token: 't' });
  writeFileSync(join(config, 'nats', 'context', 'broken.json'), '{"password": "hunter2" x');
});
afterEach(() => rmSync(config, { recursive: true }));

const writeContext = (name: string, fields: object): void =>
  writeFileSync(join(config, 'nats', 'context', `${name}.json`), JSON.stringify(fields));
const target = (flags: Parameters<typeof connectTarget>[0], env: NodeJS.ProcessEnv = {}): Target =>
  connectTarget(flags, { XDG_CONFIG_HOME: config, HOME: join(config, 'ada'), ...env });
const select = (name: string): void => writeFileSync(join(config, 'nats', 'context.txt'), `${name}\n`);
const write = (name: string, content: string): string => {
  writeFileSync(join(config, name), content);
  return join(config, name);
};

test('is this machine by default', () => {
  expect(target({})).toEqual({ servers: ['nats://127.0.0.1:4222'], from: 'the default' });
});

test('is NATS_URL, or --server before it', () => {
  expect(target({}, { NATS_URL: 'demo:4222' })).toEqual({ servers: ['nats://demo:4222'], from: 'NATS_URL' });
  expect(target({ server: 'nats://a, b' }, { NATS_URL: 'demo:4222' })).toEqual({
    servers: ['nats://a', 'nats://b'],
    from: '--server',
  });
});

test('is the selected context if neither is set', () => {
  select('prod');
  expect(target({})).toEqual({
    servers: ['tls://p1:4222', 'tls://p2:4222'],
    creds: join(config, 'ada', 'prod.creds'),
    from: 'nats context prod (selected)',
  });
  expect(target({}, { NATS_URL: 'nats://demo:4222' }).from).toBe('NATS_URL');
});

test('is a context that is named, before NATS_URL and the selected one', () => {
  select('prod');
  expect(target({ context: 'lab' }, { NATS_URL: 'nats://demo:4222', SLUICE_TOKEN: 'of demo' })).toEqual({
    servers: ['nats://lab:4222'],
    user: 'ada',
    password: 'secret',
    token: 't',
    from: 'nats context lab',
  });
});

test('is a context that NATS_CONTEXT names as it is one that --context names', () => {
  select('prod');
  const env = { NATS_CONTEXT: 'lab', NATS_URL: 'nats://demo:4222', SLUICE_TOKEN: 'of demo' };
  const named = { servers: ['nats://lab:4222'], user: 'ada', password: 'secret', token: 't' };
  expect(target({}, env)).toEqual({ ...named, from: 'nats context lab (from NATS_CONTEXT)' });
  for (const flags of [{}, { server: 'other:4222' }, { token: 'of the flag' }])
    expect({ ...target(flags, env), from: '' }).toEqual({ ...target({ ...flags, context: 'lab' }, env), from: '' });
  expect(target({ context: 'prod' }, env).from).toBe('nats context prod');
  expect(() => target({}, { ...env, NATS_CONTEXT: 'none' })).toThrow('nats context none (from NATS_CONTEXT): ');
  expect(target({}, { ...env, NATS_CONTEXT: '' }).from).toBe('NATS_URL');
});

test('takes --creds instead of the credentials of the context', () => {
  const creds = join(config, 'other.creds');
  expect(target({ context: 'prod', creds }).creds).toBe(creds);
  expect(() => target({ creds: '/none.creds' })).toThrow('credentials file /none.creds not found');
});

test('names a missing or broken context and the existing ones, without its content', () => {
  expect(() => target({ context: 'none' })).toThrow(
    /nats context none: .*none\.json not found; known contexts: broken, lab, prod/,
  );
  expect(() => target({ context: 'broken' })).toThrow(/broken\.json is not valid JSON( at position \d+)?$/);
  expect(() => target({ context: '../context/lab' })).toThrow('this is not the name of a context');
});

test('is the same from flags, variables, a context, and the nats CLI’s variables', async () => {
  const { certFile, keyFile } = await (await testAuthority()).write(config);
  const [password, seed] = [write('password', 'secret\n'), write('ada.nk', `${SEED}\n`)];
  const tls = { tlsCa: certFile, tlsCert: certFile, tlsKey: keyFile, tlsFirst: true, inboxPrefix: '_INBOX_ada' };
  const options = { ...tls, user: 'ada', passwordFile: password };
  const expected = { servers: ['tls://a:4222'], ...options };
  expect(target({ server: 'tls://a:4222', ...options })).toEqual({ ...expected, from: '--server' });
  const own = {
    NATS_URL: 'tls://a:4222',
    SLUICE_NATS_USER: 'ada',
    SLUICE_NATS_PASSWORD_FILE: password,
    SLUICE_NATS_CA: certFile,
    SLUICE_NATS_CERT: certFile,
    SLUICE_NATS_KEY: keyFile,
    SLUICE_NATS_TLS_FIRST: 'true',
    SLUICE_NATS_INBOX_PREFIX: '_INBOX_ada',
  };
  expect(target({}, own)).toEqual({ ...expected, from: 'NATS_URL' });
  writeContext('all', {
    url: 'tls://a:4222',
    nkey: '$FOLDER/ada.nk',
    ca: '${FOLDER}/tls.crt',
    cert: certFile,
    key: keyFile,
    tls_first: true,
    inbox_prefix: '_INBOX_ada',
  });
  const context = { servers: ['tls://a:4222'], ...tls, nkey: seed, from: 'nats context all' };
  expect(target({ context: 'all' }, { FOLDER: config })).toEqual(context);
  const theirs = { NATS_URL: 'a', NATS_USER: 'ada', NATS_PASSWORD: 's', NATS_CA: certFile };
  expect(target({}, theirs)).toMatchObject({ user: 'ada', password: 's', tlsCa: certFile });
  expect(target({}, { NATS_NKEY: seed }).nkey).toBe(seed);
  expect(target({}, { NATS_TOKEN: 't' }).token).toBe('t');
});

test('takes credentials as a whole, from flags first, then Sluice’s variables, then those of the nats CLI', () => {
  const creds = join(config, 'other.creds');
  const env = { NATS_CREDS: creds, NATS_USER: 'ada' };
  expect(target({}, { ...env, SLUICE_TOKEN: 't' })).toEqual({
    servers: ['nats://127.0.0.1:4222'],
    token: 't',
    from: 'the default',
  });
  expect(target({ user: 'bo', password: 'p' }, { SLUICE_TOKEN: 't' })).toEqual({
    servers: ['nats://127.0.0.1:4222'],
    user: 'bo',
    password: 'p',
    from: 'the default',
  });
  expect(target({}, { NATS_CREDS: creds, SLUICE_CREDS: '' }).creds).toBe(creds);
  expect(target({ server: 'b' }, { NATS_URL: 'nats://ada:secret@a' })).toEqual({
    servers: ['nats://b'],
    from: '--server',
  });
});

test('treats user information in a URL as user and password, or as a token, and removes it from the URL', () => {
  expect(target({ server: 'nats://ada:s%40cret@a:4222,b' })).toEqual({
    servers: ['nats://a:4222', 'nats://b'],
    user: 'ada',
    password: 's@cret',
    from: '--server',
  });
  expect(target({}, { NATS_URL: 'tls://t0ken@[::1]:4222' })).toEqual({
    servers: ['tls://[::1]:4222'],
    token: 't0ken',
    from: 'NATS_URL',
  });
});

test.each([
  ['two methods', { token: 't', user: 'ada', nkey: 'x' }, {}, '--nkey and --user and --token cannot be used together'],
  [
    'a user in the URL and a token',
    {},
    { NATS_URL: 'nats://a:b@c', SLUICE_TOKEN: 't' },
    'SLUICE_TOKEN and the user in NATS_URL cannot be used together',
  ],
  ['different users', { server: 'nats://a:b@c,nats://d:e@f' }, {}, '--server: the URLs name different users'],
  ['a password without a user', {}, { SLUICE_NATS_PASSWORD: 'x' }, 'SLUICE_NATS_PASSWORD needs SLUICE_NATS_USER'],
  [
    'two passwords',
    { user: 'a', password: 'b', passwordFile: 'c' },
    {},
    '--password and --password-file cannot be used together',
  ],
  ['a certificate without a key', { tlsCert: 'x' }, {}, '--tls-cert needs --tls-key'],
  ['a key without a certificate', { tlsKey: 'x' }, {}, '--tls-key needs --tls-cert'],
  ['an empty flag', { token: '' }, {}, '--token is empty'],
  ['another scheme', { server: 'ws://a' }, {}, '"ws://a" starts with ws://, which is not supported'],
  ['a path', { server: 'nats://a/b' }, {}, 'must have a host, and nothing after the port'],
  [
    'a switch that is neither true nor false',
    {},
    { SLUICE_NATS_TLS_FIRST: 'maybe' },
    'SLUICE_NATS_TLS_FIRST is "maybe", but must be true or false',
  ],
  ['an inbox prefix with a wildcard', { inboxPrefix: 'a.*' }, {}, '--inbox-prefix is "a.*", but must be a subject'],
  ['an inbox prefix with a space', {}, { SLUICE_NATS_INBOX_PREFIX: 'a b' }, 'SLUICE_NATS_INBOX_PREFIX is "a b", but'],
  ['an inbox prefix with an empty name', { inboxPrefix: 'a.' }, {}, '--inbox-prefix is "a.", but must be a subject'],
  ['a missing CA', { tlsCa: '/none.pem' }, {}, 'CA file /none.pem not found'],
] as const)('%s: refused', (_what, flags, env, message) => {
  expect(() => target(flags, env)).toThrow(message);
});

test.each([
  'nats://ada:hunter2 x@a',
  'nats://ada:hunter2/x@a',
  'nats://ada:hunter2#x@a',
  'nats://ada:hunter2%zz@a',
  'nats://a,ws://ada:hunter2@b',
])('does not repeat an invalid URL, because it may contain a password: %s', (server) => {
  let message = '';
  try {
    target({}, { NATS_URL: server });
  } catch (error) {
    message = (error as Error).message;
  }
  expect(message).toMatch(/^NATS_URL: URL [12] of [12] /);
  expect(message).not.toContain('hunter2');
});

test.each([
  ['nsc', 'nsc://op/account/user'],
  ['socks_proxy', 'socks5://proxy'],
  ['jetstream_domain', 'hub'],
  ['jetstream_api_prefix', 'JS.hub'],
  ['windows_cert_store', 'user'],
  ['windows_cert_match_by', 'subject'],
  ['windows_cert_match', 'x'],
  ['windows_ca_certs_match', ['x']],
])('refuses a context with %s, because it would be ignored', (field, value) => {
  writeContext('c', { url: 'a', [field]: value });
  expect(() => target({ context: 'c' })).toThrow(`nats context c: ${field} is not supported: `);
});

test('knows every field that nats context add writes, and ignores an empty one', () => {
  const text = {
    ...{ description: '', url: 'nats://a', socks_proxy: '', token: '', user: '', password: '', creds: '', nkey: '' },
    ...{ cert: '', key: '', ca: '', nsc: '', jetstream_domain: '', jetstream_api_prefix: '' },
    ...{ jetstream_event_prefix: '', inbox_prefix: '', user_jwt: '', color_scheme: 'red', tls_first: false },
    ...{ windows_cert_store: '', windows_cert_match_by: '', windows_cert_match: '', windows_ca_certs_match: null },
  };
  writeContext('empty', text);
  expect(target({ context: 'empty' })).toEqual({ servers: ['nats://a'], from: 'nats context empty' });
});

test.each([
  ['an unknown field', { tls_pin: 'x' }, 'the field "tls_pin" is unknown to this version of Sluice'],
  ['a number instead of text', { token: 1 }, 'token must be text'],
  ['text instead of true or false', { tls_first: 'yes' }, 'tls_first must be true or false'],
  ['a secret in a password manager', { creds: 'op://vault/item' }, 'creds refers to a secret with op://'],
  ['an inbox prefix with a wildcard', { inbox_prefix: '>' }, 'inbox_prefix of nats context c is ">", but must be'],
  ['an invalid seed', { user_jwt: 'x', user_seed: SEED.slice(0, -1) }, 'c: user_seed must be the nkey seed of a user'],
  [
    'two methods',
    { creds: 'x', user_jwt: 'y' },
    'creds of nats context c and user_jwt of nats context c cannot be used together',
  ],
  [
    'a seed without a JWT',
    { user_jwt: '', user_seed: SEED },
    'user_seed of nats context c needs user_jwt of nats context c',
  ],
])('refuses a context with %s', (_what, fields, message) => {
  writeContext('c', fields);
  expect(() => target({ context: 'c' })).toThrow(message);
  expect(() => target({ context: 'c' })).not.toThrow(SEED.slice(0, -1));
});

test('names invalid files without quoting them', async () => {
  const wrong = write('wrong', 'hunter2');
  const { certFile, keyFile } = await (await testAuthority()).write(config);
  const other = await (await testAuthority()).write(join(config, 'ada'));
  const cases = [
    [{ creds: wrong }, `credentials file ${wrong} cannot be used: it must contain a JWT and an nkey seed`],
    [{ nkey: wrong }, `nkey file ${wrong} cannot be used: it must contain the nkey seed of a user`],
    [{ tokenFile: write('empty', '\n') }, `token file ${join(config, 'empty')} cannot be used: it is empty`],
    [{ tlsCa: wrong }, `CA file ${wrong} cannot be used: it must contain certificates in PEM`],
    [{ tlsCert: wrong, tlsKey: keyFile }, `client certificate ${wrong} cannot be used`],
    [{ tlsCert: certFile, tlsKey: wrong }, `private key ${wrong} cannot be used`],
    [{ tlsCert: certFile, tlsKey: other.keyFile }, `the private key ${other.keyFile} does not belong to`],
  ] as const;
  for (const [flags, message] of cases) {
    expect(() => target(flags)).toThrow(message);
    expect(() => target(flags)).not.toThrow('hunter2');
  }
});
