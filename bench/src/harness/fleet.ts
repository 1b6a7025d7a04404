import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { LEDGER } from '#libs/contracts';
import { readAll, StreamReader, type Bus } from '#libs/nats';
import type { FleetFigures, FleetOptions, FromFleet, ToFleet } from '../fleet/protocol.js';
import type { ControlPlane } from './control-plane.js';
import { DIST } from './folders.js';
import type { PartContext } from './part.js';
import { end, start, until } from './processes.js';

/** The process of the appliers, as the bench sees it. */
export class Fleet {
  private constructor(
    readonly child: ChildProcess,
    readonly nodes: number,
  ) {}

  /** Starts the appliers. Resolves when all have announced themselves. */
  static async start(
    context: PartContext,
    urls: readonly string[],
    options: Partial<FleetOptions> & { readonly nodes: number },
  ): Promise<Fleet> {
    const child = start(process.execPath, [join(DIST, 'bench', 'src', 'fleet', 'main.js')], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    context.atEnd(() => end(child, 1_000));
    const fleet = new Fleet(child, options.nodes);
    const started = fleet.receive('started');
    fleet.send({ do: 'start', options: { urls, connections: 10, heartbeatMs: 10_000, announce: true, ...options } });
    await started;
    return fleet;
  }

  get pid(): number {
    return this.child.pid as number;
  }

  /** Resolves when it is done. Everything that is applied after that is counted. */
  async reset(): Promise<void> {
    this.send({ do: 'reset' });
    await this.figures();
  }

  async figures(): Promise<FleetFigures> {
    const answer = this.receive('figures');
    this.send({ do: 'figures' });
    return (await answer).figures;
  }

  private send(message: ToFleet): void {
    this.child.send(message);
  }

  private receive<S extends FromFleet['type']>(type: S): Promise<FromFleet & { readonly type: S }> {
    return new Promise((resolve, reject) => {
      const listen = (message: FromFleet): void => {
        if (message.type !== type && message.type !== 'failed') return;
        this.child.off('message', listen);
        this.child.off('exit', ended);
        if (message.type === 'failed') reject(new Error(message.error));
        else resolve(message as FromFleet & { readonly type: S });
      };
      const ended = (): void => reject(new Error('the process of the appliers ended'));
      this.child.on('message', listen);
      this.child.once('exit', ended);
    });
  }
}

/**
 * Starts this many nodes on a control plane. Resolves when all are known, reviewed and have reported, and nothing is in
 * progress.
 */
export async function joinFleet(
  context: PartContext,
  plane: ControlPlane,
  options: Partial<FleetOptions> & { readonly nodes: number },
): Promise<Fleet> {
  const before = performance.now();
  let all: true | undefined;
  const counted = countNodes(plane.bus, options.nodes).then(() => void (all = true));
  const fleet = await Fleet.start(context, plane.urls, options);
  await until(
    `${options.nodes} nodes to be known and reviewed`,
    () => {
      plane.checkAlive();
      return all;
    },
    600_000,
    100,
  );
  await counted;
  await plane.untilQuiet();
  context.say(`${options.nodes} nodes joined in ${((performance.now() - before) / 1000).toFixed(1)} s`);
  return fleet;
}

async function countNodes(bus: Bus, nodes: number): Promise<void> {
  const [reviewed, reported] = [new Set<string>(), new Set<string>()];
  const reader = await StreamReader.open(bus, {
    stream: LEDGER,
    filters: ['node.reviewed.*', 'node.reported.*'],
    ahead: 2_000,
  });
  try {
    for await (const { subject } of reader) {
      (subject.startsWith('node.reviewed.') ? reviewed : reported).add(subject.slice(subject.lastIndexOf('.') + 1));
      if (reviewed.size >= nodes && reported.size >= nodes) return;
    }
  } finally {
    reader.close();
  }
}

/** The times of all facts with these subjects after a sequence, by the server's clock. */
export async function timesOf(bus: Bus, filters: readonly string[], from: number): Promise<readonly number[]> {
  const times: number[] = [];
  await readAll(
    bus,
    { stream: LEDGER, filters, from, ahead: 5_000 },
    (message) => void times.push(Number(message.timestampNanos / 1_000n) / 1e3),
  );
  return times;
}
