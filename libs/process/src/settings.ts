import { isIP } from 'node:net';
import { HEARTBEATS_PER_SECOND } from '#libs/contracts';
import { LOG_LEVELS } from './logger.js';
import {
  number,
  oneOf,
  PORT,
  readSettings,
  text,
  whole,
  type Environment,
  type Form,
  type Setting,
  type Values,
} from './setting.js';

const SECOND_MS = 1_000;
const DAY_MS = 24 * 3_600 * SECOND_MS;

const ADDRESSES: Form<readonly string[]> = {
  must: 'IP addresses, such as 192.0.2.53 or 192.0.2.53:5353, separated by commas',
  parse: (text) => {
    const all = text.split(',').map((one) => one.trim());
    return all.every(isServer) ? all : undefined;
  },
};

/** As `dns.setServers` takes it: an IPv6 address with a port is in brackets. */
function isServer(text: string): boolean {
  if (isIP(text) > 0) return true;
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+)):(\d+)$/.exec(text) ?? [];
  return isIP(bracketed ?? plain ?? '') === (bracketed === undefined ? 4 : 6) && PORT.parse(port ?? '') !== undefined;
}

/**
 * Every environment variable that only services read. All programs read `CONNECTION_SETTINGS`.
 * `docs/reference/settings.md` is generated from both. An applier has options (services/applier/src/shell/options.ts),
 * which can also be set in the environment.
 */
export const SERVICE_SETTINGS = {
  logLevel: { variable: 'SLUICE_LOG', form: oneOf(LOG_LEVELS), fallback: 'info', description: 'How much to log.' },
  replicas: {
    variable: 'SLUICE_REPLICAS',
    form: whole(1),
    description:
      'Copies of each stream and bucket in a cluster of NATS servers: 1, 3 or 5, the same for all services. Without ' +
      'it, existing streams stay as they are, and new ones have 1.',
  },
  snapshotFacts: {
    variable: 'SLUICE_SNAPSHOT_FACTS',
    form: whole(1),
    fallback: '20000',
    description: 'Facts between two snapshots of the state of a service.',
  },
  healthPort: {
    variable: 'SLUICE_HEALTH_PORT',
    form: PORT,
    description:
      'Port for `/healthz` (200 while the process runs, also while it waits for NATS) and `/readyz` (200 while it is ' +
      'connected, has read the ledger to its end and has not stopped deciding; else 503 with the reason).',
  },
  healthAddress: {
    variable: 'SLUICE_HEALTH_ADDRESS',
    form: { must: 'an IP address, or all', parse: (text) => (text === 'all' || isIP(text) > 0 ? text : undefined) },
    fallback: '127.0.0.1',
    description: 'IP address at which the health port listens. `all`: every address of the machine or pod.',
  },
  healthMs: {
    variable: 'SLUICE_HEALTH_SECONDS',
    form: whole(0, SECOND_MS),
    fallback: '60',
    description: 'Seconds between two health lines in the log. 0: none.',
  },
  ledgerMs: {
    variable: 'SLUICE_LEDGER_DAYS',
    services: ['merger'],
    form: whole(0, DAY_MS),
    fallback: '90',
    description: 'Days for which the ledger keeps every fact.',
  },
  sourceQuotaBytes: {
    variable: 'SLUICE_SOURCE_QUOTA_MB',
    services: ['merger'],
    form: whole(1, 1_000_000),
    fallback: '256',
    description:
      'Megabytes of changes that one source may publish per day (UTC). What exceeds it is rejected as `over-quota`. ' +
      'Each change counts 1 kB more than its body, and a rejected one also counts its reasons.',
  },
  unreferencedMs: {
    variable: 'SLUICE_UNREFERENCED_DAYS',
    services: ['merger'],
    form: whole(1, DAY_MS),
    fallback: '7',
    description: 'Days for which a config, or the targets of a change, are kept when nothing refers to them any more.',
  },
  cleanupMs: {
    variable: 'SLUICE_CLEANUP_SECONDS',
    services: ['merger'],
    form: whole(1, SECOND_MS),
    fallback: '3600',
    description: 'Seconds between two removals of old facts, and of configs that nothing refers to.',
  },
  lookupMs: {
    variable: 'SLUICE_LOOKUP_SECONDS',
    services: ['merger'],
    form: number('above 0', SECOND_MS),
    fallback: '30',
    description: 'Seconds between two look-ups of a host name that a fragment refers to.',
  },
  dnsServers: {
    variable: 'SLUICE_DNS_SERVERS',
    services: ['merger'],
    form: ADDRESSES,
    description:
      'IP addresses of the DNS servers that are asked for these names, separated by commas, each perhaps with a port. ' +
      'Without it, those of the machine (`/etc/resolv.conf`).',
  },
  silentAfterMs: {
    variable: 'SLUICE_SILENT_SECONDS',
    services: ['inventory'],
    form: number('above 0', SECOND_MS),
    fallback: '35',
    description: 'Seconds without a heartbeat after which a node is silent.',
  },
  heartbeatsPerSecond: {
    variable: 'SLUICE_HEARTBEATS_PER_SECOND',
    services: ['inventory'],
    form: number(0),
    fallback: String(HEARTBEATS_PER_SECOND) as string,
    description:
      'About how many heartbeats the whole fleet may send in a second; nodes of larger fleets are asked for fewer. ' +
      '0: no limit.',
  },
  nodeSource: {
    variable: 'SLUICE_INVENTORY',
    services: ['inventory'],
    form: oneOf(['announced', 'kubernetes']),
    fallback: 'announced',
    description:
      'Where the inventory learns about nodes. `kubernetes`: Node objects in addition to what nodes announce. A Node that is ' +
      'NotReady or cordoned then counts against the budget of its pool, a deleted one has left, and its labels take ' +
      'precedence over those that the node announces.',
  },
  drainStrategy: {
    variable: 'SLUICE_DRAIN',
    services: ['drain'],
    form: oneOf(['none', 'external', 'kubernetes']),
    fallback: 'none',
    description:
      'How nodes are drained. `external`: another program drains them and answers with `ops.node.drained`. ' +
      '`kubernetes`: the Node is cordoned and its pods are evicted.',
  },
  pod: {
    variable: 'SLUICE_POD',
    services: ['drain'],
    form: text('namespace/name'),
    fallback: '',
    description: 'The pod that this process runs in. It is evicted last.',
  },
  debounceMs: {
    variable: 'SLUICE_DEBOUNCE_SECONDS',
    services: ['gateway'],
    form: number(0, SECOND_MS),
    fallback: '1',
    description: 'Objects that are applied within this many seconds of each other become one change.',
  },
  webhookPort: {
    variable: 'SLUICE_WEBHOOK_PORT',
    services: ['gateway'],
    form: PORT,
    description:
      'Port of the admission webhook. It needs `SLUICE_WEBHOOK_CERT_FILE` and `SLUICE_WEBHOOK_KEY_FILE`, because the ' +
      'API server uses TLS only. Without it there is no webhook.',
  },
  webhookCertFile: {
    variable: 'SLUICE_WEBHOOK_CERT_FILE',
    services: ['gateway'],
    form: text('a file'),
    description: 'Certificate of the webhook, in PEM.',
  },
  webhookKeyFile: {
    variable: 'SLUICE_WEBHOOK_KEY_FILE',
    services: ['gateway'],
    form: text('a file'),
    description: 'Private key of the webhook, in PEM.',
  },
} as const satisfies Readonly<Record<string, Setting<unknown>>>;

/** The settings that a service reads from its environment. */
export type Settings = Values<typeof SERVICE_SETTINGS>;

/**
 * Reads the settings of these services, or of all if none is named. Throws SettingsError with everything that is wrong.
 */
export const settingsFrom = (environment: Environment = process.env, services?: readonly string[]): Settings =>
  readSettings(SERVICE_SETTINGS, environment, services);
