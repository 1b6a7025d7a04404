import { createServer, type Server, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { until } from '#libs/testing';

/**
 * What an applier in a VM does to its disk and its machine, as it tells before and after each (`guest/pauses.cjs`), and
 * holds it at one of these for as long as wanted.
 */
export class PausePoints {
  private readonly server: Server = createServer((socket) => this.hear(socket));
  private readonly sockets = new Set<Socket>();
  private seen: string[] = [];
  private wanted: ((point: string) => boolean) | undefined;
  private held: { readonly point: string; readonly socket: Socket } | undefined;

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** All that was passed since the last `clear`. */
  get passed(): readonly string[] {
    return this.seen;
  }

  clear(): void {
    this.seen = [];
    this.wanted = undefined;
    this.held = undefined;
  }

  /** From now on the first point of which this is true is not passed. */
  hold(at: (point: string) => boolean): void {
    this.clear();
    this.wanted = at;
  }

  /** Waits until the applier stands there, and says where. */
  async reached(what: string): Promise<string> {
    return (
      await until(() => this.held, `the applier comes to ${what}; it passed ${this.seen.slice(-8).join(', ')}`, 200_000)
    ).point;
  }

  /** Lets it go on. */
  release(): void {
    this.held?.socket.end('go on\n');
    this.held = undefined;
  }

  close(): void {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
  }

  private hear(socket: Socket): void {
    this.sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => this.sockets.delete(socket));
    socket.once('data', (data: Buffer) => {
      const point = data.toString().trim();
      this.seen.push(point);
      if (this.wanted?.(point) === true) {
        this.wanted = undefined;
        this.held = { point, socket };
      } else {
        socket.end('go on\n');
      }
    });
  }
}
