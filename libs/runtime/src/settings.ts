import { LOG_LEVELS, type LogLevel } from './logger.js';

/** What every process of Sluice takes from its environment. */
export interface Settings {
  /** NATS_URL, several separated by commas. */
  readonly servers: readonly string[];
  /** SLUICE_CREDS: a credentials file. */
  readonly creds: string | undefined;
  /** SLUICE_TOKEN: instead of credentials. */
  readonly token: string | undefined;
  /** SLUICE_LOG: how much to say. */
  readonly logLevel: LogLevel;
  /** SLUICE_REPLICAS: copies of each stream in a cluster, 1, 3 or 5; undefined leaves what is there. */
  readonly replicas: number | undefined;
  /** SLUICE_SNAPSHOT_FACTS: a snapshot after so many facts. */
  readonly snapshotFacts: number;
  /** SLUICE_LEDGER_DAYS: for how long every fact is kept. */
  readonly ledgerMs: number;
  /** SLUICE_UNNAMED_DAYS: for how long a config or the targets of a change are kept that nothing names any more. */
  readonly unnamedMs: number;
  /** SLUICE_UPKEEP_SECONDS: how often the merger looks what can go. */
  readonly upkeepMs: number;
  /** SLUICE_HEALTH_SECONDS: how often to log the health line; 0 for never. */
  readonly healthMs: number;
  /** SLUICE_HEALTH_PORT: where `/healthz` and `/readyz` are answered; undefined for nowhere. */
  readonly healthPort: number | undefined;
}

/** An environment that cannot be understood; the message names every variable that is wrong. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}

export type Environment = Readonly<Record<string, string | undefined>>;

const DAY_MS = 24 * 3_600_000;

/** Reads the settings. Throws SettingsError with all that is wrong. */
export function settingsFrom(environment: Environment = process.env): Settings {
  const complaints: string[] = [];
  const servers = (environment['NATS_URL'] ?? 'nats://127.0.0.1:4222')
    .split(',')
    .map((url) => url.trim())
    .filter((url) => url !== '');
  for (const url of servers) if (/\s/.test(url)) complaints.push(`NATS_URL: ${JSON.stringify(url)} is not a URL`);
  if (servers.length === 0) complaints.push('NATS_URL is empty');
  const logLevel = (environment['SLUICE_LOG'] ?? 'info') as LogLevel;
  if (!LOG_LEVELS.includes(logLevel))
    complaints.push(`SLUICE_LOG is ${JSON.stringify(logLevel)}, and must be one of ${LOG_LEVELS.join(', ')}`);
  const whole = (name: string, fallback: number | undefined, least: number): number | undefined => {
    const text = environment[name];
    if (text === undefined || text === '') return fallback;
    const value = Number(text);
    if (!Number.isInteger(value) || value < least)
      complaints.push(`${name} is ${JSON.stringify(text)}, and must be a whole number from ${least}`);
    return value;
  };
  const replicas = whole('SLUICE_REPLICAS', undefined, 1);
  const snapshotFacts = whole('SLUICE_SNAPSHOT_FACTS', 20_000, 1) as number;
  const ledgerDays = whole('SLUICE_LEDGER_DAYS', 90, 0) as number;
  const unnamedDays = whole('SLUICE_UNNAMED_DAYS', 7, 1) as number;
  const upkeepSeconds = whole('SLUICE_UPKEEP_SECONDS', 3_600, 1) as number;
  const healthSeconds = whole('SLUICE_HEALTH_SECONDS', 60, 0) as number;
  const healthPort = whole('SLUICE_HEALTH_PORT', undefined, 1);
  if ((healthPort ?? 1) > 65_535) complaints.push(`SLUICE_HEALTH_PORT is ${healthPort}, and no port is above 65535`);
  if (complaints.length > 0) throw new SettingsError(complaints.join('; '));
  return {
    servers,
    creds: environment['SLUICE_CREDS'] || undefined,
    token: environment['SLUICE_TOKEN'] || undefined,
    logLevel,
    replicas,
    snapshotFacts,
    ledgerMs: ledgerDays * DAY_MS,
    unnamedMs: unnamedDays * DAY_MS,
    upkeepMs: upkeepSeconds * 1_000,
    healthMs: healthSeconds * 1_000,
    healthPort,
  };
}
