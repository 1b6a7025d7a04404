import { SettingsError } from '#libs/process';
import type { Credentials } from './connection-options.js';

export interface ServerUrls {
  /** With their scheme, without user information. */
  readonly servers: readonly string[];
  /** The part of the URLs before the `@`: a user with a password, or a token. */
  readonly credentials: Credentials | undefined;
}

/**
 * Reads comma-separated URLs. Throws SettingsError if one is invalid. The message names the source of the URLs, and
 * contains nothing that may be a password.
 */
export function readServerUrls(text: string, place: string): ServerUrls {
  const parts = text.split(',').map((part) => part.trim());
  const urls = parts.map((part, at) => {
    const label = text.includes('@') ? `URL ${at + 1} of ${parts.length}` : JSON.stringify(part);
    return readUrl(part, `${place}: ${label}`);
  });
  const all = urls.flatMap(({ credentials }) => credentials ?? []);
  const [first] = all;
  if (all.some((one) => JSON.stringify(one) !== JSON.stringify(first)))
    throw new SettingsError(
      `${place}: the URLs name different users: all servers must accept the same one, so name it once`,
    );
  return { servers: urls.map(({ server }) => server), credentials: first };
}

interface ServerUrl {
  readonly server: string;
  readonly credentials: Credentials | undefined;
}

const SCHEMES = ['nats:', 'tls:'];

function readUrl(text: string, where: string): ServerUrl {
  const withScheme = text.includes('://') ? text : `nats://${text}`;
  if (text === '' || /\s/.test(text) || !URL.canParse(withScheme))
    throw new SettingsError(
      `${where} is not a URL, such as nats://host:4222 or tls://host:4222; special characters in a user or password must be percent-encoded`,
    );
  const url = new URL(withScheme);
  if (!SCHEMES.includes(url.protocol))
    throw new SettingsError(`${where} starts with ${url.protocol}//, which is not supported: use nats:// or tls://`);
  if (url.hostname === '' || !['', '/'].includes(url.pathname) || url.search !== '' || url.hash !== '')
    throw new SettingsError(
      `${where} must have a host, and nothing after the port; special characters in a user or password must be percent-encoded`,
    );
  return { server: `${url.protocol}//${url.host}`, credentials: credentialsIn(url, where) };
}

/** As everywhere in NATS, a user without a password is a token. */
function credentialsIn(url: URL, where: string): Credentials | undefined {
  if (url.username === '' && url.password === '') return undefined;
  try {
    const [user, password] = [decodeURIComponent(url.username), decodeURIComponent(url.password)];
    return password === '' ? { token: user } : { user, password };
  } catch {
    throw new SettingsError(`${where} has a user or password with a "%" that is not part of a percent-encoding`);
  }
}
