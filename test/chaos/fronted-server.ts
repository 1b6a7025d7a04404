import { TcpProxy, startNatsServer, type NatsServer } from '#libs/testing';
import type { RunningServer } from '../e2e/fleet.js';

/** A nats-server behind a proxy that can be cut. Only the test driver connects to it directly. */
export class FrontedServer implements RunningServer {
  private isDown = false;
  private isFrozen = false;

  private constructor(
    readonly server: NatsServer,
    private readonly way: TcpProxy,
  ) {}

  static async start(folder: string): Promise<FrontedServer> {
    const server = await startNatsServer({ dataDir: folder });
    return new FrontedServer(server, await TcpProxy.to(server.port));
  }

  get url(): string {
    return `nats://127.0.0.1:${this.way.port}`;
  }
  get isUp(): boolean {
    return !this.isDown && !this.isFrozen;
  }

  kill(): void {
    this.isDown = true;
    this.server.kill();
  }

  /** The server stops answering, and its connections stay open. */
  freeze(): void {
    this.isFrozen = true;
    process.kill(this.server.pid, 'SIGSTOP');
  }

  refuse(): Promise<void> {
    return this.way.cut();
  }

  /** Undoes every fault. */
  async restore(): Promise<void> {
    if (this.isFrozen && !this.isDown) process.kill(this.server.pid, 'SIGCONT');
    this.isFrozen = false;
    if (this.isDown) await this.server.restart();
    this.isDown = false;
    await this.way.restore();
  }

  async stop(): Promise<void> {
    if (this.isFrozen) process.kill(this.server.pid, 'SIGCONT');
    await this.way.cut();
    await this.server.stop();
  }
}
