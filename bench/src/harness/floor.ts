import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { connectBus, ensureTopology } from '#libs/nats';
import type { NatsServer } from '#libs/testing';
import type { FloorOptions, FromFloor, ToFloor } from '../floor/protocol.js';
import { startServer } from './control-plane.js';
import { Fleet } from './fleet.js';
import { DIST } from './folders.js';
import type { PartContext } from './part.js';
import { cpuMs, end, start } from './processes.js';

/** One rollout of the floor. */
export interface FloorRun {
  readonly ms: number;
  /** Of the server and of the process that replaces the control plane. */
  readonly cpuMs: number;
  readonly handoffsMs: readonly number[];
}

/**
 * The floor as real processes: a separate server, the same appliers, and the bare client instead of the control plane.
 */
export class Floor {
  private constructor(
    private readonly server: NatsServer,
    private readonly child: ChildProcess,
    private readonly fleet: Fleet,
    private readonly options: FloorOptions,
  ) {}

  static async start(
    context: PartContext,
    { nodes, budget }: { readonly nodes: number; readonly budget: number },
  ): Promise<Floor> {
    const server = await startServer(context);
    const bus = await connectBus({ servers: server.url, name: 'bench' });
    await ensureTopology(bus);
    await bus.close();
    const fleet = await Fleet.start(context, [server.url], { nodes, announce: false, heartbeatMs: 0 });
    const child = start(process.execPath, [join(DIST, 'bench', 'src', 'floor', 'main.js')], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    context.atEnd(() => end(child, 1_000));
    return new Floor(server, child, fleet, { url: server.url, nodes, budget });
  }

  /** Runs one rollout, after its configs were written. */
  async run(): Promise<FloorRun> {
    await this.ask({ do: 'prepare', options: this.options });
    await this.fleet.reset();
    const before = this.cpuMs();
    const done = await this.ask({ do: 'run' });
    const used = this.cpuMs() - before;
    const { handoffsMs, refused, applied } = await this.fleet.figures();
    if (refused > 0 || applied !== this.options.nodes)
      throw new Error(`the floor's appliers applied ${applied} and refused ${refused} of ${this.options.nodes}`);
    return { ms: done.type === 'done' ? done.ms : Number.NaN, cpuMs: used, handoffsMs };
  }

  private cpuMs(): number {
    return cpuMs(this.server.pid) + cpuMs(this.child.pid as number);
  }

  private ask(message: ToFloor): Promise<FromFloor> {
    return new Promise((resolve, reject) => {
      const exited = (): void => reject(new Error('the process of the floor ended'));
      this.child.once('exit', exited);
      this.child.once('message', (answer: FromFloor) => {
        this.child.off('exit', exited);
        if (answer.type === 'failed') reject(new Error(answer.error));
        else resolve(answer);
      });
      this.child.send(message);
    });
  }
}
