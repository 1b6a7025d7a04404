import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { CONNECTION_SETTINGS, readSettings, SettingsError } from '#libs/process';

export interface ConnectFlags {
  readonly server?: string | undefined;
  readonly creds?: string | undefined;
  readonly token?: string | undefined;
  readonly context?: string | undefined;
}

/** Where to connect and as whom. */
export interface Target {
  readonly servers: string;
  readonly creds?: string | undefined;
  readonly user?: string | undefined;
  readonly pass?: string | undefined;
  readonly token?: string | undefined;
  /** Where the URL comes from, for the error when no server answers. */
  readonly from: string;
}

const DEFAULT_URL = 'nats://127.0.0.1:4222';

/** In this order: flags, a context that was named, NATS_URL, the selected context, this machine. */
export function connectTarget(flags: ConnectFlags, env: NodeJS.ProcessEnv): Target {
  const url = env['NATS_URL'] ?? '';
  const named = flags.context ?? (flags.server === undefined && url === '' ? selected(env) : undefined);
  const base = named === undefined ? envTarget(env, url) : readContext(named, env, flags.context !== undefined);
  return readable({
    ...base,
    ...(flags.server === undefined ? {} : { servers: withScheme(flags.server), from: '--server' }),
    ...(flags.creds === undefined ? {} : { creds: expand(flags.creds, env) }),
    ...(flags.token === undefined ? {} : { token: flags.token }),
  });
}

function readable(target: Target): Target {
  if (target.creds !== undefined && !existsSync(target.creds))
    throw new SettingsError(
      `credentials file ${target.creds} not found: set it with --creds, SLUICE_CREDS or NATS_CREDS, or in the nats context`,
    );
  return target;
}

function envTarget(env: NodeJS.ProcessEnv, url: string): Target {
  const { creds, token } = readSettings(CONNECTION_SETTINGS, env);
  return {
    ...(url === '' ? { servers: DEFAULT_URL, from: 'the default' } : { servers: withScheme(url), from: 'NATS_URL' }),
    creds: expand(creds, env),
    token,
  };
}

function readContext(name: string, env: NodeJS.ProcessEnv, wasNamed: boolean): Target {
  const folder = contextFolder(env);
  const file = join(folder, 'context', `${name}.json`);
  const from = `nats context ${name}${wasNamed ? '' : ' (selected)'}`;
  if (!existsSync(file)) {
    const known = existsSync(join(folder, 'context'))
      ? readdirSync(join(folder, 'context')).map((entry) => entry.replace(/\.json$/, ''))
      : [];
    throw new SettingsError(
      `${from}: ${file} not found; ${known.length === 0 ? 'create it with nats context add' : `known contexts: ${known.join(', ')}`}`,
    );
  }
  let value: Record<string, unknown>;
  try {
    value = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  } catch (error) {
    throw new SettingsError(`${from}: ${file} is not valid JSON: ${(error as Error).message}`);
  }
  const text = (key: string): string | undefined =>
    typeof value[key] === 'string' && value[key] !== '' ? (value[key] as string) : undefined;
  return {
    servers: withScheme(text('url') ?? DEFAULT_URL),
    from,
    creds: expand(text('creds'), env),
    user: text('user'),
    pass: text('password'),
    token: text('token'),
  };
}

function selected(env: NodeJS.ProcessEnv): string | undefined {
  const named = env['NATS_CONTEXT'] ?? '';
  if (named !== '') return named;
  const file = join(contextFolder(env), 'context.txt');
  const name = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  return name === '' ? undefined : name;
}

function contextFolder(env: NodeJS.ProcessEnv): string {
  const named = env['XDG_CONFIG_HOME'] ?? '';
  return join(named === '' ? join(env['HOME'] ?? homedir(), '.config') : named, 'nats');
}

const expand = <T extends string | undefined>(path: T, env: NodeJS.ProcessEnv): T | string =>
  path?.startsWith('~/') === true ? join(env['HOME'] ?? homedir(), path.slice(2)) : path;

const withScheme = (url: string): string =>
  url
    .split(',')
    .map((one) => one.trim())
    .map((one) => (one.includes('://') ? one : `nats://${one}`))
    .join(',');
