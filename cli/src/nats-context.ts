import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { UsageError } from './exit.js';

export interface ConnectFlags {
  readonly server?: string;
  readonly creds?: string;
  readonly context?: string;
}

/** Where to connect and as whom. */
export interface Target {
  readonly servers: string;
  readonly creds?: string;
  readonly user?: string;
  readonly pass?: string;
  readonly token?: string;
  /** Where the URL is from, for the words when nobody answers. */
  readonly from: string;
}

const DEFAULT_URL = 'nats://127.0.0.1:4222';

/**
 * Flags win, then a context that was named, then NATS_URL, then the context that `nats context select` chose, then
 * this machine.
 */
export function connectTarget(flags: ConnectFlags, env: NodeJS.ProcessEnv): Target {
  const url = env['NATS_URL'] ?? '';
  const named = flags.context ?? (flags.server === undefined && url === '' ? selected(env) : undefined);
  const base = named === undefined ? envTarget(env, url) : readContext(named, env, flags.context !== undefined);
  return readable({
    ...base,
    ...(flags.server === undefined ? {} : { servers: withScheme(flags.server), from: '--server' }),
    ...(flags.creds === undefined ? {} : { creds: expand(flags.creds, env) }),
  });
}

function readable(target: Target): Target {
  if (target.creds !== undefined && !existsSync(target.creds))
    throw new UsageError(
      `there is no credentials file ${target.creds}: name one with --creds, SLUICE_CREDS or NATS_CREDS, or in the context`,
    );
  return target;
}

function envTarget(env: NodeJS.ProcessEnv, url: string): Target {
  const creds = env['SLUICE_CREDS'] || env['NATS_CREDS'] || '';
  const place =
    url === '' ? { servers: DEFAULT_URL, from: 'the default' } : { servers: withScheme(url), from: 'NATS_URL' };
  return creds === '' ? place : { ...place, creds: expand(creds, env) };
}

function readContext(name: string, env: NodeJS.ProcessEnv, wasNamed: boolean): Target {
  const folder = contextFolder(env);
  const file = join(folder, 'context', `${name}.json`);
  const from = `nats context ${name}${wasNamed ? '' : ' (the selected one)'}`;
  if (!existsSync(file)) {
    const known = existsSync(join(folder, 'context'))
      ? readdirSync(join(folder, 'context')).map((entry) => entry.replace(/\.json$/, ''))
      : [];
    throw new UsageError(
      `${from}: there is no ${file}; ${known.length === 0 ? 'make it with nats context add' : `there are ${known.join(', ')}`}`,
    );
  }
  let value: Record<string, unknown>;
  try {
    value = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  } catch (error) {
    throw new UsageError(`${from}: ${file} is not JSON: ${(error as Error).message}`);
  }
  const text = (key: string): string | undefined =>
    typeof value[key] === 'string' && value[key] !== '' ? (value[key] as string) : undefined;
  const [creds, user, pass, token] = [text('creds'), text('user'), text('password'), text('token')];
  return {
    servers: withScheme(text('url') ?? DEFAULT_URL),
    from,
    ...(creds === undefined ? {} : { creds: expand(creds, env) }),
    ...(user === undefined ? {} : { user }),
    ...(pass === undefined ? {} : { pass }),
    ...(token === undefined ? {} : { token }),
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

function expand(path: string, env: NodeJS.ProcessEnv): string {
  return path.startsWith('~/') ? join(env['HOME'] ?? homedir(), path.slice(2)) : path;
}

const withScheme = (url: string): string =>
  url
    .split(',')
    .map((one) => one.trim())
    .map((one) => (one.includes('://') ? one : `nats://${one}`))
    .join(',');
