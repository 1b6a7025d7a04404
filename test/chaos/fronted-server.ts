import { TcpProxy, startNatsServer, type NatsServer } from '#libs/testing';
import type { RunningServer } from '../e2e/fleet.js';

/** A nats-server that everybody but the driver reaches through a way that can be cut. */
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

  /** It answers nothing, and its connections stay. */
  freeze(): void {
    this.isFrozen = true;
    process.kill(this.server.pid, 'SIGSTOP');
  }

  refuse(): Promise<void> {
    return this.way.cut();
  }

  /** All is well again. */
  async mend(): Promise<void> {
    if (this.isFrozen && !this.isDown) process.kill(this.server.pid, 'SIGCONT');
    this.isFrozen = false;
    if (this.isDown) await this.server.restart();
    this.isDown = false;
    await this.way.mend();
  }

  async stop(): Promise<void> {
    if (this.isFrozen) process.kill(this.server.pid, 'SIGCONT');
    await this.way.cut();
    await this.server.stop();
  }
}
