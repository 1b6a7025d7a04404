import { createHash } from 'node:crypto';
import type { StoredMsg } from '@nats-io/jetstream';
import {
  configKey,
  CONFIGS,
  decodeConfig,
  TARGETS,
  WireError,
  type Config,
  type Target,
  type Targets,
} from '#libs/contracts';
import type { ConfigBlob, ConfigName } from '#libs/engine';
import { monotonicMs, SILENT, type Logger } from '#libs/process';
import type { Bus } from './connection.js';
import { isConnectionTrouble } from './errors.js';
import { isStoredDeletion } from './messages.js';
import { growingMs, pause, pipelined } from './signal.js';
import { kvStream, kvSubject } from './topology.js';

/** How many writes run at once: enough that the server is the limit, and not the network. */
const WIDTH = 256;
const MAX_KNOWN = 2_000;
/** The most bytes of text in the cache: a config may have nearly a megabyte. */
const MAX_KNOWN_BYTES = 32 * 2 ** 20;
const PIECE_BYTES = 256 * 1024;
const TRIES = 5;
/**
 * How long to ask a cluster for a value. After the replicas were raised from one, a server that restarts answers as if
 * it led the stream, and lacks newer values.
 */
const ABSENT_AFTER_MS = 5_000;

/** Large, immutable values, written before the fact that names them. Writing a value again protects it from a sweep. */
export class Blobs {
  /** By hash: a config that many nodes share is read and checked once. */
  private readonly cache = new Map<string, Config>();
  private cacheBytes = 0;

  /** `fromLeader`: whether this user may ask the leader of a stream, if no other server has a value. */
  constructor(
    private readonly bus: Bus,
    private readonly options: { readonly logger?: Logger; readonly fromLeader?: boolean } = {},
  ) {}

  async putConfigs(configs: Iterable<ConfigBlob>): Promise<void> {
    await pipelined(configs, WIDTH, ({ node, hash, text }) => this.put(CONFIGS, configKey(node, hash), text));
  }

  /** The text of the config; undefined if there is none. */
  async config(node: string, hash: string): Promise<string | undefined> {
    return this.get(CONFIGS, configKey(node, hash));
  }

  /** The configs with these names, in the same order; undefined for one that is missing or does not match its hash. */
  async configs(names: readonly ConfigName[]): Promise<readonly (Config | undefined)[]> {
    const configs: (Config | undefined)[] = names.map(() => undefined);
    await pipelined(names.entries(), WIDTH, async ([i, name]) => {
      configs[i] = this.cache.get(name.hash) ?? (await this.readConfig(name));
    });
    return configs;
  }

  private async readConfig(name: ConfigName): Promise<Config | undefined> {
    const text = await this.config(name.node, name.hash);
    // Anybody with access to the bucket can write there, and what is read once stands in for every node with this hash.
    const config = text === undefined || sha256(text) !== name.hash ? undefined : decodeConfig(text);
    if (config === undefined) {
      (this.options.logger ?? SILENT).warn(
        name,
        text === undefined
          ? 'the config is not in the bucket configs: it was deleted by hand, or because nothing referred to it for days'
          : 'what is in the bucket configs is not the config with this hash: somebody has changed it',
      );
      return undefined;
    }
    if (this.cache.size >= MAX_KNOWN || this.cacheBytes >= MAX_KNOWN_BYTES) {
      this.cache.clear();
      this.cacheBytes = 0;
    }
    if (!this.cache.has(name.hash)) this.cacheBytes += (text as string).length;
    this.cache.set(name.hash, config);
    return config;
  }

  /** Stores the targets of a change in pieces of at most 256 KiB. The keys go into `config.rendered`. */
  async putTargets(change: string, targets: Targets): Promise<string[]> {
    const pieces = piecesOf(targets).map((text) => ({ key: `${change}.${sha256(text)}`, text }));
    await pipelined(pieces, WIDTH, ({ key, text }) => this.put(TARGETS, key, text));
    return pieces.map(({ key }) => key);
  }

  /** The targets that these keys name, merged. Throws WireError for a key that names nothing. */
  async targets(keys: readonly string[]): Promise<Targets> {
    const merged: Record<string, Target> = {};
    await pipelined(keys, WIDTH, async (key) => {
      const text = await this.get(TARGETS, key);
      if (text === undefined) throw new WireError(`there is no ${JSON.stringify(key)} in the bucket ${TARGETS}`);
      if (sha256(text) !== key.slice(key.indexOf('.') + 1))
        throw new WireError(`the content of ${JSON.stringify(key)} in the bucket ${TARGETS} does not match its key`);
      Object.assign(merged, JSON.parse(text) as Targets);
    });
    return merged;
  }

  private async put(bucket: string, key: string, text: string): Promise<void> {
    for (let tries = 0; ; tries += 1) {
      try {
        await this.bus.publish(kvSubject(bucket, key), text);
        return;
      } catch (error) {
        if (tries >= TRIES || !isConnectionTrouble(error)) throw error;
        await pause(growingMs(tries, 100, 2_000));
      }
    }
  }

  /** A named value was written before, so in a cluster it is requested several times before it counts as absent. */
  private async get(bucket: string, key: string): Promise<string | undefined> {
    const subject = kvSubject(bucket, key);
    const untilMs = monotonicMs() + (this.bus.isClustered ? ABSENT_AFTER_MS : 0);
    for (let tries = 0; ; tries += 1) {
      const text = textOf(await this.nearest(bucket, subject)) ?? textOf(await this.fromLeader(bucket, subject));
      if (text !== undefined) return text;
      if (monotonicMs() >= untilMs) return undefined;
      await pause(growingMs(tries, 50, 1_000));
    }
  }

  private async nearest(bucket: string, subject: string): Promise<StoredMsg | null> {
    try {
      return await this.bus.nearest(kvStream(bucket), subject);
    } catch (error) {
      if (isConnectionTrouble(error)) throw error;
      return null; // a value put by hand, with headers that the client cannot read
    }
  }

  /** A replica that has no value may lag. */
  private async fromLeader(bucket: string, subject: string): Promise<StoredMsg | null> {
    if (this.options.fromLeader === false) return null;
    return this.bus.stored(kvStream(bucket), { last_by_subj: subject });
  }
}

const textOf = (message: StoredMsg | null): string | undefined =>
  message === null || isStoredDeletion(message) ? undefined : message.string();

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Splits by nodes, in their order, so that the same targets give the same pieces. */
function piecesOf(targets: Targets): readonly string[] {
  const pieces: string[] = [];
  let lines: string[] = [];
  let bytes = 0;
  for (const node of Object.keys(targets).sort()) {
    const line = `${JSON.stringify(node)}:${JSON.stringify(targets[node])}`;
    if (bytes + line.length + 2 > PIECE_BYTES) {
      pieces.push(`{${lines.join(',')}}`);
      lines = [];
      bytes = 0;
    }
    lines.push(line);
    bytes += line.length + 1;
  }
  if (lines.length > 0) pieces.push(`{${lines.join(',')}}`);
  return pieces;
}
