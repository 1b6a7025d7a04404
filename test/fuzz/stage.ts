import { setTimeout as sleep } from 'node:timers/promises';
import { SERVICES, SNAPSHOTS, VIEW_BUCKETS } from '#libs/contracts';
import { until } from '#libs/testing';
import { startFleet, type Fleet } from '../e2e/fleet.js';
import { file } from '../e2e/manifests.js';
import type { BucketContents } from './doors/buckets.js';
import { RawClient, type Reply } from './raw-client.js';
import { linesOf, signsOf, type Signs } from './vital-signs.js';

/** Long enough to detect a busy loop, even on a busy machine. */
const QUIET_MS = 2_500;
/** Share of the interval, in addition to the CPU usage of an idle process. A busy loop uses all of it. */
const LOOP_SHARE = 0.4;
const MOST_QUIET_LINES = 10;
const ERROR_LEVEL = 50;

/** The fleet under test, and the conditions that must hold after any input. */
export class Stage {
  private constructor(
    readonly fleet: Fleet,
    private client: RawClient,
    private readonly idle: Signs,
  ) {}

  static async open(): Promise<Stage> {
    const fleet = await startFleet({ sizes: [2, 1, 2], env: { SLUICE_LOG: 'warn' } });
    const before = signsOf(fleet.processes, fleet.data);
    await sleep(QUIET_MS);
    return new Stage(
      fleet,
      await RawClient.connect(fleet.server.url),
      spent(before, signsOf(fleet.processes, fleet.data)),
    );
  }

  async close(): Promise<void> {
    this.client.close();
    await this.fleet.close();
  }

  get signs(): Signs {
    return signsOf(this.fleet.processes, this.fleet.data);
  }

  /**
   * The answer of the server or of a service. Undefined if the server closes the connection, as it does for messages
   * that are too large.
   */
  async request(
    subject: string,
    body: Buffer,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Reply | undefined> {
    const answer = this.client.request(subject, body, headers);
    answer.catch(() => undefined);
    try {
      await this.client.flush();
    } catch {
      this.client.close();
      this.client = await RawClient.connect(this.fleet.server.url);
      return undefined;
    }
    return answer;
  }

  /** The sequence in the stream. Undefined if the server refused the message, or already had it. */
  async store(
    subject: string,
    body: Buffer,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<number | undefined> {
    const reply = await this.request(subject, body, headers);
    const ack =
      reply === undefined ? {} : (JSON.parse(reply.body) as { readonly seq?: number; readonly duplicate?: boolean });
    return ack.duplicate === true ? undefined : ack.seq;
  }

  async send(subject: string, body: Buffer, headers: Readonly<Record<string, string>> = {}): Promise<void> {
    this.client.publish(subject, body, headers);
    await this.client.flush().catch(async () => {
      this.client.close();
      this.client = await RawClient.connect(this.fleet.server.url);
    });
  }

  /** The newest message on a subject of a stream, as the server stores it. */
  async last(stream: string, subject: string): Promise<string | undefined> {
    const reply = await this.request(
      `$JS.API.STREAM.MSG.GET.${stream}`,
      Buffer.from(JSON.stringify({ last_by_subj: subject })),
    );
    const { message } = JSON.parse(reply?.body ?? '{}') as { readonly message?: { readonly data?: string } };
    return message === undefined ? undefined : Buffer.from(message.data ?? '', 'base64').toString();
  }

  /** The last sequence of the ledger, according to the server. */
  async ledgerEnd(): Promise<number> {
    const reply = await this.request('$JS.API.STREAM.INFO.LEDGER', Buffer.alloc(0));
    return (JSON.parse(reply?.body ?? '{}') as { readonly state: { readonly last_seq: number } }).state.last_seq;
  }

  /** The content of the buckets of views and of snapshots, in an order that depends only on the content. */
  async bucketContents(): Promise<BucketContents> {
    const found: Record<string, { subject: string; value: Buffer }[]> = {};
    for (const bucket of VIEW_BUCKETS) {
      const keys = [...(await this.fleet.client.list(bucket)).keys()].sort();
      found[bucket] = [];
      for (const key of keys) {
        const subject = `$KV.${bucket}.${['nodes', 'leases', 'status', 'drains'].includes(bucket) ? key.replaceAll('.', '_') : key}`;
        const value = await this.last(`KV_${bucket}`, subject);
        if (value !== undefined && value !== '') found[bucket].push({ subject, value: Buffer.from(value) });
      }
    }
    found[SNAPSHOTS] = [];
    for (const subject of await this.subjects(`OBJ_${SNAPSHOTS}`, `$O.${SNAPSHOTS}.M.>`)) {
      found[SNAPSHOTS].push({ subject, value: Buffer.from((await this.last(`OBJ_${SNAPSHOTS}`, subject)) ?? '') });
    }
    return found;
  }

  private async subjects(stream: string, filter: string): Promise<readonly string[]> {
    const reply = await this.request(
      `$JS.API.STREAM.INFO.${stream}`,
      Buffer.from(JSON.stringify({ subjects_filter: filter })),
    );
    const { state } = JSON.parse(reply?.body ?? '{}') as {
      readonly state?: { readonly subjects?: Readonly<Record<string, number>> };
    };
    return Object.keys(state?.subjects ?? {}).sort();
  }

  /** Publishes a valid change for all nodes, and waits until it has been rolled out to all of them. */
  async rollOut(content: string): Promise<void> {
    const { fleet } = this;
    const roles = fleet.pools.map(({ pool }) => pool);
    const change = await fleet.apply(...roles.map((role) => file(`good-${role}`, `${content} of ${role}\n`, role)));
    const end = await fleet.ended(change);
    if (end.phase !== 'committed')
      throw new Error(`a good change ends ${end.phase} ${end.outcome}: ${end.reason} ${JSON.stringify(end.reasons)}`);
    await fleet.when(
      'rollouts',
      change,
      ({ phase, applied }) => phase === 'succeeded' && applied === fleet.nodes.length,
    );
    for (const node of fleet.nodes) {
      const role = node.split('-')[0] as string;
      const found = fleet.folders.files(node)[`/etc/good-${role}.conf`];
      if (found !== `${content} of ${role}\n`)
        throw new Error(`${node} has ${JSON.stringify(found)}, and should have ${content}`);
    }
  }

  /**
   * The problems of the processes since `before`: ended or restarted, busy for no reason, too many log lines, or errors
   * in the log.
   */
  async complaints(before: Signs): Promise<readonly string[]> {
    const start = this.signs;
    await sleep(QUIET_MS);
    const end = this.signs;
    const during = spent(start, end);
    return Object.keys(before).flatMap((name) => {
      const [was, is, quiet, idle] = [before[name], end[name], during[name], this.idle[name]];
      if (was === undefined || is === undefined || quiet === undefined) return [`${name} is gone`];
      const errors = linesOf(this.fleet.data, name, was.logLines).filter((line) => isError(line));
      return [
        ...(was.pid === is.pid ? [] : [`${name} was process ${was.pid} and is ${is.pid}`]),
        ...(quiet.cpuMs <= (idle?.cpuMs ?? 0) + QUIET_MS * LOOP_SHARE
          ? []
          : [
              `${name} took ${quiet.cpuMs} ms of ${QUIET_MS} ms with nothing to do; idle it took ${idle?.cpuMs ?? 0} ms`,
            ]),
        ...(quiet.logLines <= MOST_QUIET_LINES
          ? []
          : [
              `${name} logged ${quiet.logLines} lines with nothing to do: ${linesOf(this.fleet.data, name).at(-1)?.slice(0, 500)}`,
            ]),
        ...errors.slice(0, 3).map((line) => `${name} is in trouble: ${line.slice(0, 1_500)}`),
      ];
    });
  }

  /** Restarts every service, so that it reads everything that was edited meanwhile. */
  async restart(): Promise<void> {
    const { fleet } = this;
    for (const service of SERVICES) await fleet.processes.stop(service);
    for (const service of SERVICES) fleet.startService(service);
    await until(async () => {
      const { services } = await fleet.client.inspect();
      return services.length === SERVICES.length && services.every(({ halted }) => halted === '');
    }, 'every service is back');
    for (const node of fleet.nodes) {
      for (const bucket of ['nodes', 'leases', 'status'] as const)
        await fleet.when(bucket, node, (view) => view.node === node);
    }
    for (const { pool, nodes } of fleet.pools)
      await fleet.when('pools', pool, ({ members }) => members === nodes.length);
  }
}

const spent = (before: Signs, after: Signs): Signs =>
  Object.fromEntries(
    Object.entries(after).map(([name, { pid, cpuMs, logLines }]) => [
      name,
      { pid, cpuMs: cpuMs - (before[name]?.cpuMs ?? 0), logLines: logLines - (before[name]?.logLines ?? 0) },
    ]),
  );

function isError(line: string): boolean {
  try {
    return ((JSON.parse(line) as { readonly level?: number }).level as number) >= ERROR_LEVEL;
  } catch {
    // Not a line of our log: Node.js itself prints it when a process dies.
    return true;
  }
}
