import {
  CONNECTION_SETTINGS,
  readSettings,
  SettingsError,
  type ConnectFlags,
  type ConnectionKey,
  type Environment,
} from '#libs/process';
import { checkFiles } from './connection-files.js';
import type { ConnectionOptions, Credentials } from './connection-options.js';
import { expandHome, fieldOf, readContext, selectedContext } from './nats-context.js';
import { readServerUrls, type ServerUrls } from './server-urls.js';

/** Where to connect and with which credentials, as the user asked for it. */
export interface Target extends ConnectionOptions {
  readonly servers: readonly string[];
  /** The source of the URLs, for the error when no server answers. */
  readonly from: string;
}

/** The flags, the environment or a context. */
interface Source {
  readonly values: { readonly [Key in Name]?: string | boolean | undefined };
  /** The name of a value for people: a flag, a variable or a field. */
  readonly place: (name: Name) => string;
}

type Name = ConnectionKey | 'userJwt' | 'userSeed';

const FILES = ['creds', 'nkey', 'passwordFile', 'tokenFile', 'tlsCa', 'tlsCert', 'tlsKey'] as const;
/** Ways to authenticate. A user may also have a token, as in NATS. */
const METHODS = ['creds', 'nkey', 'userJwt', 'user', 'token', 'tokenFile'] as const;
const CREDENTIALS = [...METHODS, 'userSeed', 'password', 'passwordFile'] as const;

/**
 * Combines flags, environment and contexts of the nats CLI into connection options. Servers, in this order: the flag, a
 * context that is named by --context or NATS_CONTEXT, NATS_URL, the selected context, this machine. A context replaces
 * the environment, and flags replace single values of both. Credentials are replaced as a whole, and so are certificate
 * and key. Throws SettingsError for invalid or contradictory options. No message contains a secret.
 */
export function connectTarget(flags: ConnectFlags, env: Environment): Target {
  const url = env['NATS_URL'] ?? '';
  const own: Source = { values: flags, place: flagOf };
  for (const [name, value] of Object.entries(flags))
    if (value === '') throw new SettingsError(`${flagOf(name as Name)} is empty`);
  const context = contextOf(flags, env);
  const sources = context === undefined ? [own, ...environment(env)] : [own, contextSource(context, env)];
  return targetOf(sources, context === undefined && url === '' ? 'the default' : undefined, env);
}

function targetOf(sources: readonly Source[], byDefault: string | undefined, env: Environment): Target {
  const urls = sources.find(({ values }) => values.server !== undefined);
  const urlPlace = urls?.place('server') ?? 'the default';
  const read = readServerUrls(String(urls?.values.server ?? CONNECTION_SETTINGS.server.fallback), urlPlace);
  const first = <N extends Name>(name: N): Source['values'][N] =>
    sources.find(({ values }) => values[name] !== undefined)?.values[name];
  const target: Record<string, unknown> = {
    servers: read.servers,
    from: urls === sources[0] ? urlPlace : (byDefault ?? urlPlace),
    ...credentialsOf(sources, urls, read),
    ...certificateOf(sources),
    tlsCa: first('tlsCa'),
    tlsFirst: first('tlsFirst'),
    inboxPrefix: inboxPrefixOf(sources),
  };
  for (const name of FILES) if (typeof target[name] === 'string') target[name] = expandHome(target[name], env);
  return checkFiles(target as unknown as Target);
}

/** Those of the first source that has any. User information in a URL belongs to the source of the URL. */
function credentialsOf(sources: readonly Source[], urls: Source | undefined, read: ServerUrls): Credentials {
  for (const source of sources) {
    const { values, place } = source;
    const present = CREDENTIALS.filter((name) => values[name] !== undefined);
    const inUrl = source === urls ? read.credentials : undefined;
    if (present.length === 0 && inUrl === undefined) continue;
    const methods = METHODS.filter((name) => values[name] !== undefined);
    const isUserWithToken = methods.length === 2 && methods[0] === 'user';
    const all = [...methods.map(place), ...(inUrl === undefined ? [] : [`the user in ${place('server')}`])];
    if (all.length > 1 && (inUrl !== undefined || !isUserWithToken))
      throw new SettingsError(`${all.join(' and ')} cannot be used together: keep one of them`);
    requireTogether(source, 'password', 'user');
    requireTogether(source, 'passwordFile', 'user');
    requireTogether(source, 'userSeed', 'userJwt');
    if (values.password !== undefined && values.passwordFile !== undefined)
      throw new SettingsError(
        `${place('password')} and ${place('passwordFile')} cannot be used together: keep one of them`,
      );
    return inUrl ?? Object.fromEntries(present.map((name) => [name, values[name]]));
  }
  return {};
}

function certificateOf(sources: readonly Source[]): Pick<ConnectionOptions, 'tlsCert' | 'tlsKey'> {
  const source = sources.find(({ values }) => values.tlsCert !== undefined || values.tlsKey !== undefined);
  if (source === undefined) return {};
  requireTogether(source, 'tlsCert', 'tlsKey');
  requireTogether(source, 'tlsKey', 'tlsCert');
  return { tlsCert: source.values.tlsCert as string, tlsKey: source.values.tlsKey as string };
}

/** The client would find it out at the first request, and report it as trouble with the server. */
function inboxPrefixOf(sources: readonly Source[]): string | undefined {
  const source = sources.find(({ values }) => values.inboxPrefix !== undefined);
  const prefix = source?.values.inboxPrefix as string | undefined;
  if (source !== undefined && !SUBJECT_PREFIX.test(prefix ?? ''))
    throw new SettingsError(
      `${source.place('inboxPrefix')} is ${JSON.stringify(prefix)}, but must be a subject without wildcards and spaces, such as _INBOX_ada`,
    );
  return prefix;
}

const SUBJECT_PREFIX = /^[^\s\p{C}*>.]+(\.[^\s\p{C}*>.]+)*$/u;

function requireTogether({ values, place }: Source, one: Name, other: Name): void {
  if (values[one] !== undefined && values[other] === undefined)
    throw new SettingsError(`${place(one)} needs ${place(other)}`);
}

/** Sluice's own variables come before those of the nats CLI, which may be meant for another server. */
function environment(env: Environment): readonly Source[] {
  const source = (variableOf: (name: ConnectionKey) => string | undefined): Source => {
    const settings = Object.fromEntries(
      Object.keys(CONNECTION_SETTINGS).flatMap((name) => {
        const variable = variableOf(name as ConnectionKey);
        return variable === undefined ? [] : [[CONNECTION_SETTINGS[name as ConnectionKey].variable, env[variable]]];
      }),
    );
    return {
      values: { ...readSettings(CONNECTION_SETTINGS, settings), server: settings['NATS_URL'] || undefined },
      place: (name) => variableOf(name as ConnectionKey) ?? name,
    };
  };
  const settings: Readonly<Record<string, { readonly variable: string; readonly orVariable?: string }>> =
    CONNECTION_SETTINGS;
  return [source((name) => settings[name]?.variable), source((name) => settings[name]?.orVariable)];
}

interface NamedContext {
  readonly name: string;
  /** For errors: which context, and why it is used. */
  readonly from: string;
}

/** A selected context is a default: servers that are named elsewhere replace it. */
function contextOf({ context, server }: ConnectFlags, env: Environment): NamedContext | undefined {
  if (context !== undefined) return { name: context, from: `nats context ${context}` };
  const name = env['NATS_CONTEXT'] ?? '';
  if (name !== '') return { name, from: `nats context ${name} (from NATS_CONTEXT)` };
  if (server !== undefined || (env['NATS_URL'] ?? '') !== '') return undefined;
  const selected = selectedContext(env);
  return selected === undefined ? undefined : { name: selected, from: `nats context ${selected} (selected)` };
}

function contextSource({ name, from }: NamedContext, env: Environment): Source {
  return {
    values: { server: CONNECTION_SETTINGS.server.fallback, ...readContext(name, from, env) },
    place: (value) => (value === 'server' ? from : `${fieldOf(value)} of ${from}`),
  };
}

const flagOf = (name: Name): string =>
  name in CONNECTION_SETTINGS ? (CONNECTION_SETTINGS[name as ConnectionKey].flag.split(' ')[0] as string) : name;
