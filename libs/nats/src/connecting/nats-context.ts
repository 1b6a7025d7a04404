import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { SettingsError, type Environment } from '#libs/process';
import { seedIn } from './connection-files.js';

/** The fields of a context of the nats CLI, by Sluice's names. */
export type ContextValues = Readonly<Record<string, string | boolean>>;

/** The supported fields, and their names here. In those of type `file`, `~` and $VARIABLES are expanded. */
const HONOURED: Readonly<Record<string, { readonly name: string; readonly type?: 'file' | 'switch' }>> = {
  url: { name: 'server' },
  creds: { name: 'creds', type: 'file' },
  nkey: { name: 'nkey', type: 'file' },
  user: { name: 'user' },
  password: { name: 'password' },
  token: { name: 'token' },
  user_jwt: { name: 'userJwt' },
  user_seed: { name: 'userSeed' },
  ca: { name: 'tlsCa', type: 'file' },
  cert: { name: 'tlsCert', type: 'file' },
  key: { name: 'tlsKey', type: 'file' },
  tls_first: { name: 'tlsFirst', type: 'switch' },
  inbox_prefix: { name: 'inboxPrefix' },
};

/** They do not affect the connection, or nothing that Sluice uses: it reads no JetStream advisories. */
const WITHOUT_EFFECT = ['name', 'description', 'color_scheme', 'jetstream_event_prefix'];

const WINDOWS = 'use certificates in files: cert, key and ca';
/** The fields that would be ignored, and what to do instead. */
const UNSUPPORTED: Readonly<Record<string, string>> = {
  nsc: 'write the credentials to a file (nsc generate creds) and name it in creds',
  socks_proxy: 'connect without a proxy, or forward a local port',
  jetstream_domain:
    'connect to a server of that domain, or set default_js_domain in the configuration of the leaf node',
  jetstream_api_prefix: 'import the JetStream API into the account under its own name, $JS.API.>',
  windows_cert_store: WINDOWS,
  windows_cert_match_by: WINDOWS,
  windows_cert_match: WINDOWS,
  windows_ca_certs_match: WINDOWS,
};

/** References to secrets elsewhere, which newer versions of the nats CLI resolve. */
const REFERENCE = /^(op|env|nsc|file):\/\/|^data:/;

/**
 * Reads a context of the nats CLI. Every field is supported, has no effect, or is an error. Throws SettingsError. The
 * message names the context and the field, and contains no value.
 */
export function readContext(name: string, from: string, env: Environment): ContextValues {
  const values: Record<string, string | boolean> = {};
  for (const [field, value] of Object.entries(contentOf(name, from, env))) {
    if (isEmpty(value) || WITHOUT_EFFECT.includes(field)) continue;
    const honoured = Object.hasOwn(HONOURED, field) ? HONOURED[field] : undefined;
    if (honoured === undefined) throw new SettingsError(`${from}: ${whyNot(field)}`);
    const isSwitch = honoured.type === 'switch';
    if (typeof value !== (isSwitch ? 'boolean' : 'string'))
      throw new SettingsError(`${from}: ${field} must be ${isSwitch ? 'true or false' : 'text'}`);
    if (typeof value === 'string' && field !== 'url' && REFERENCE.test(value))
      throw new SettingsError(
        `${from}: ${field} refers to a secret with ${(REFERENCE.exec(value) as RegExpExecArray)[0]}, which Sluice does not support: write it to a file, or into the context`,
      );
    if (field === 'user_seed' && seedIn(value as string) === undefined)
      throw new SettingsError(`${from}: user_seed must be the nkey seed of a user (SU…)`);
    values[honoured.name] =
      honoured.type === 'file' ? withVariables(value as string, env) : (value as string | boolean);
  }
  return values;
}

/** The field with this name here. */
export const fieldOf = (name: string): string =>
  Object.entries(HONOURED).find(([, honoured]) => honoured.name === name)?.[0] ?? name;

/** The context that this user selected with `nats context select`. */
export function selectedContext(env: Environment): string | undefined {
  const file = join(contextFolder(env), 'context.txt');
  const name = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  return name === '' ? undefined : name;
}

/** With `~/` for the home folder, as a shell has it. */
export const expandHome = (path: string, env: Environment): string =>
  path.startsWith('~/') ? join(env['HOME'] ?? homedir(), path.slice(2)) : path;

const isEmpty = (value: unknown): boolean =>
  value === '' || value === false || value === null || (Array.isArray(value) && value.length === 0);

const whyNot = (field: string): string =>
  Object.hasOwn(UNSUPPORTED, field)
    ? `${field} is not supported: ${UNSUPPORTED[field]}`
    : `the field ${JSON.stringify(field)} is unknown to this version of Sluice: remove it, or connect with flags`;

function contentOf(name: string, from: string, env: Environment): object {
  if (name.includes('..') || name.includes('/')) throw new SettingsError(`${from}: this is not the name of a context`);
  const folder = join(contextFolder(env), 'context');
  const file = join(folder, `${name}.json`);
  if (!existsSync(file)) {
    const names = existsSync(folder)
      ? readdirSync(folder)
          .filter((entry) => entry.endsWith('.json'))
          .map((entry) => entry.slice(0, -'.json'.length))
      : [];
    throw new SettingsError(
      `${from}: ${file} not found; ${names.length === 0 ? 'create it with nats context add' : `known contexts: ${names.join(', ')}`}`,
    );
  }
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    // The parser's message quotes the file, which contains secrets.
    const [at = ''] = / at position \d+/.exec((error as Error).message) ?? [];
    throw new SettingsError(`${from}: ${file} is not valid JSON${at}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new SettingsError(`${from}: ${file} must contain a JSON object`);
  return value;
}

function contextFolder(env: Environment): string {
  const folder = env['XDG_CONFIG_HOME'] ?? '';
  return join(folder === '' ? join(env['HOME'] ?? homedir(), '.config') : folder, 'nats');
}

const withVariables = (path: string, env: Environment): string =>
  path.replace(/\$(?:\{(\w+)\}|(\w+))/g, (_, braced?: string, bare?: string) => env[braced ?? bare ?? ''] ?? '');
