import canonicalize from 'canonicalize';
import { EMPTY_CONFIG, type Config, type ConfigEntry } from '#libs/contracts';
import { sha256 } from '../content.js';

/** Identity of a config: sha256 of its canonical JSON (RFC 8785). */
export const hashOf = (config: unknown): string => sha256(canonicalize(config) ?? '');

export const EMPTY_HASH = hashOf(EMPTY_CONFIG);

/** The config that has this hash, or why the text is not it. */
export function parseConfig(text: string, hash: string): Config | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return `config ${hash} is not JSON: ${(error as Error).message}`;
  }
  const actual = hashOf(value);
  if (actual !== hash) return `config ${hash} does not match its content, whose hash is ${actual}`;
  const fragments = (value as Partial<Config> | null)?.fragments;
  if (!Array.isArray(fragments) || !fragments.every(isEntry)) return `config ${hash} is not a list of fragments`;
  return value as Config;
}

function isEntry(value: unknown): value is ConfigEntry {
  const entry = value as Partial<ConfigEntry> | null;
  return (
    typeof entry?.kind === 'string' &&
    typeof entry.name === 'string' &&
    typeof entry.spec === 'object' &&
    entry.spec !== null
  );
}
