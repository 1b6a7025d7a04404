import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** A proxy to a TCP port on loopback whose connection can be cut and restored. It keeps its own port. */
export class TcpProxy {
  private readonly sockets = new Set<Socket>();
  private server: Server | undefined;

  private constructor(
    readonly port: number,
    private readonly target: number,
  ) {}

  /** Listens on a free port. */
  static async to(target: number): Promise<TcpProxy> {
    const server = createServer();
    await listen(server, 0);
    const proxy = new TcpProxy((server.address() as AddressInfo).port, target);
    proxy.use(server);
    return proxy;
  }

  get isCut(): boolean {
    return this.server === undefined;
  }

  /** Closes every connection, and refuses new ones. */
  async cut(): Promise<void> {
    const { server } = this;
    this.server = undefined;
    for (const socket of this.sockets) socket.destroy();
    if (server !== undefined) await new Promise((resolve) => server.close(resolve));
  }

  /** Accepts connections again. */
  async restore(): Promise<void> {
    if (this.server !== undefined) return;
    const server = createServer();
    await listen(server, this.port);
    this.use(server);
  }

  private use(server: Server): void {
    this.server = server;
    server.on('connection', (near) => {
      const far = connect({ host: '127.0.0.1', port: this.target, noDelay: true });
      near.setNoDelay(true);
      for (const [socket, other] of [
        [near, far],
        [far, near],
      ] as const) {
        this.sockets.add(socket);
        socket.on('error', () => undefined);
        socket.once('close', () => {
          this.sockets.delete(socket);
          other.destroy();
        });
        socket.pipe(other);
      }
    });
  }
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
}
