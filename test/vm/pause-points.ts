import { createServer, type Server, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { until } from '#libs/testing';

/**
 * What an applier in a VM does to its disk and its machine. It reports before and after each step (`guest/pauses.cjs`),
 * and can be held at one of these points for any time.
 */
export class PausePoints {
  private readonly server: Server = createServer((socket) => this.onConnection(socket));
  private readonly sockets = new Set<Socket>();
  private seen: string[] = [];
  private isTarget: ((point: string) => boolean) | undefined;
  private held: { readonly point: string; readonly socket: Socket } | undefined;

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** All points that were passed since the last `clear`. */
  get passed(): readonly string[] {
    return this.seen;
  }

  clear(): void {
    this.seen = [];
    this.isTarget = undefined;
    this.held = undefined;
  }

  /** From now on, the applier is held at the first point for which this returns true. */
  hold(at: (point: string) => boolean): void {
    this.clear();
    this.isTarget = at;
  }

  /** Waits until the applier is held, and returns the point. */
  async reached(what: string): Promise<string> {
    return (
      await until(() => this.held, `the applier reaches ${what}; it passed ${this.seen.slice(-8).join(', ')}`, 200_000)
    ).point;
  }

  /** Lets it continue. */
  release(): void {
    this.held?.socket.end('go on\n');
    this.held = undefined;
  }

  close(): void {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
  }

  private onConnection(socket: Socket): void {
    this.sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => this.sockets.delete(socket));
    socket.once('data', (data: Buffer) => {
      const point = data.toString().trim();
      this.seen.push(point);
      if (this.isTarget?.(point) === true) {
        this.isTarget = undefined;
        this.held = { point, socket };
      } else {
        socket.end('go on\n');
      }
    });
  }
}
