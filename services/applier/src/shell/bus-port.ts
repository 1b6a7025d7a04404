import type { NodeBus } from '#libs/client';
import { MOST_PACE_MS, type NodeAlive, type PathAnswer, type PathQuery } from '#libs/contracts';
import type { Notice } from '../core/index.js';

/** An existing connection, or a function that makes one, which the applier closes. */
export type BusSource = NodeBus | (() => Promise<NodeBus>);

/** Longer than any answer of a server that is available. */
const ANSWER_MS = 10_000;

/** The bus of one applier. It connects at the first call, retries after a failure, and never waits forever. */
export class BusPort {
  private bus: Promise<NodeBus> | undefined;
  private connected: NodeBus | undefined;
  private closed = false;
  /** The minimum interval between heartbeats that the inventory last asked for. */
  pacedMs = 0;

  constructor(
    private readonly source: BusSource,
    private readonly hear: (notice: Notice) => void,
    private readonly look: (query: PathQuery) => Promise<PathAnswer>,
    /** What it does now, for people. */
    private readonly explain: () => Promise<string> = () => Promise.resolve(''),
  ) {}

  async call<T>(what: string, ask: (bus: NodeBus) => Promise<T>): Promise<T> {
    return inTime(what, this.connect().then(ask));
  }

  /** Dropped without a connection. Returns whether it was sent. */
  alive(alive: NodeAlive): boolean {
    if (this.connected?.connected !== true) return false;
    this.connected.alive(alive);
    return true;
  }

  async close(): Promise<void> {
    this.closed = true;
    if (typeof this.source === 'function') await this.connected?.close();
  }

  private connect(): Promise<NodeBus> {
    this.bus ??= this.open().catch((error: unknown) => {
      this.bus = undefined;
      throw error;
    });
    return this.bus;
  }

  private async open(): Promise<NodeBus> {
    const bus = typeof this.source === 'function' ? await this.source() : this.source;
    if (this.closed) {
      if (typeof this.source === 'function') await bus.close();
      throw new Error('the applier was stopped');
    }
    this.connected = bus;
    bus.onPush(({ lease, status, pace, query, why, mayLag = false }) => {
      if (this.closed) return;
      if (query !== undefined)
        return void this.look(query.request).then((answer) => this.closed || query.answer(answer));
      if (why !== undefined)
        return void this.explain()
          .catch(({ message }: Error) => message)
          .then((text) => this.closed || why.answer({ text }));
      if (pace !== undefined) return void (this.pacedMs = Math.min(pace.everyMs, MOST_PACE_MS));
      if (status !== undefined) this.hear({ kind: 'status', status });
      if (lease !== undefined) this.hear({ kind: 'lease', lease });
      if (lease === undefined && status === undefined) this.hear({ kind: 'connected', mayLag });
    });
    return bus;
  }
}

async function inTime<T>(what: string, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer (${what}) in ${ANSWER_MS} ms`)), ANSWER_MS);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
