import { connect, createServer, type AddressInfo, type Server } from 'node:net';
import { once } from 'node:events';
import { TcpProxy } from './tcp-proxy.js';

describe('a TCP proxy', () => {
  let echo: Server;
  let proxy: TcpProxy;
  beforeAll(async () => {
    echo = createServer((socket) => void socket.pipe(socket)).listen(0, '127.0.0.1');
    await once(echo, 'listening');
    proxy = await TcpProxy.to((echo.address() as AddressInfo).port);
  });
  afterAll(async () => {
    await proxy.cut();
    echo.close();
  });

  const answer = async (text: string): Promise<string> => {
    const socket = connect(proxy.port, '127.0.0.1');
    try {
      socket.write(text);
      const [data] = (await once(socket, 'data')) as [Buffer];
      return data.toString();
    } finally {
      socket.destroy();
    }
  };

  test('forwards data in both directions', async () => {
    expect(await answer('hello')).toBe('hello');
  });

  test('closes all connections and refuses new ones when cut, and works on the same port when restored', async () => {
    const open = connect(proxy.port, '127.0.0.1');
    await once(open, 'connect');
    const ended = once(open, 'close');
    await proxy.cut();
    await ended;
    await expect(answer('hello')).rejects.toThrow('ECONNREFUSED');
    await proxy.restore();
    expect(await answer('again')).toBe('again');
  });
});
