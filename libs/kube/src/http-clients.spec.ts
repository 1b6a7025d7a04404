import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:https';
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo, Server, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { testAuthority, until } from '#libs/testing';
import { KubeConnection } from './connection.js';

/** A server that keeps watches open, and what it was sent. */
interface Scene {
  readonly server: Server;
  readonly connection: KubeConnection;
  readonly requests: string[];
  readonly sockets: Set<Socket>;
}

let folder: string;
let files: { readonly key: string; readonly cert: string; readonly ca: string };
const ending: (() => Promise<void> | void)[] = [];
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-http-'));
  const authority = await testAuthority();
  const { certFile, keyFile } = await authority.write(folder);
  files = { key: readFileSync(keyFile, 'utf8'), cert: readFileSync(certFile, 'utf8'), ca: authority.ca };
});
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Answering = (line: string, answer: (code: number, body: object) => void, session?: ServerHttp2Session) => void;

async function serve(answering: Answering, speaksHttp2 = true): Promise<Scene> {
  const server = speaksHttp2
    ? createSecureServer({ ...files, allowHTTP1: true })
    : (createServer(files) as unknown as Http2SecureServer);
  const [requests, sockets]: [string[], Set<Socket>] = [[], new Set()];
  server.on('connection', (socket: Socket) => sockets.add(socket));
  server.on('sessionError', () => undefined);
  server.on('request', (request, response) => {
    const line = `${request.httpVersion} ${request.method} ${request.url}`;
    requests.push(line);
    request.resume();
    if (line.includes('watch')) {
      response.writeHead(200);
      response.write('{"type":"BOOKMARK"}\n');
      return;
    }
    const answer = (code: number, body: object): void => {
      response.writeHead(code, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    answering(line, answer, request.stream?.session as ServerHttp2Session | undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const connection = await KubeConnection.open({ content: kubeconfig(url), timeoutMs: 1_000 });
  ending.push(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(() => resolve()));
  });
  ending.push(() => connection.close());
  return { server, connection, requests, sockets };
}

const kubeconfig = (server: string): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 't',
    clusters: [
      { name: 't', cluster: { server, 'certificate-authority-data': Buffer.from(files.ca).toString('base64') } },
    ],
    users: [{ name: 'u', user: { token: 'a-token' } }],
    contexts: [{ name: 't', context: { cluster: 't', user: 'u' } }],
  });

/** Resolves once the watch has had a line. */
async function watch(
  { connection }: Scene,
  path: string,
): Promise<{ readonly ended: Promise<void>; readonly stop: () => void }> {
  const stopping = new AbortController();
  let lines = 0;
  const ended = connection.lines(path, stopping.signal, () => void (lines += 1)).catch(() => undefined);
  ending.push(() => stopping.abort());
  await until(() => lines > 0, 'the watch has a line');
  return { ended, stop: () => stopping.abort() };
}

const fine: Answering = (_line, answer) => answer(200, { fine: true });

it('reads and watches over one connection, and writes over another', async () => {
  const scene = await serve(fine);
  for (const i of [1, 2, 3]) await watch(scene, `/watch/${i}`);
  expect(await scene.connection.get('/a')).toEqual({ fine: true });
  expect(scene.sockets.size).toBe(1);
  expect(await scene.connection.ask({ method: 'PATCH', path: '/a', body: {} })).toEqual({ fine: true });
  expect(scene.requests).toEqual([
    '2.0 GET /watch/1',
    '2.0 GET /watch/2',
    '2.0 GET /watch/3',
    '2.0 GET /a',
    '1.1 PATCH /a',
  ]);
});

it('reads next to watches of a server that does not speak HTTP/2', async () => {
  const scene = await serve(fine, false);
  for (const i of [1, 2, 3]) await watch(scene, `/watch/${i}`);
  expect(await scene.connection.get('/a')).toEqual({ fine: true });
  expect(scene.requests.at(-1)).toBe('1.1 GET /a');
});

it('gets the answer of a server that ends the connection with it', async () => {
  const scene = await serve((_line, answer, session) => {
    session?.goaway(0);
    answer(401, { kind: 'Status', message: 'Unauthorized', reason: 'Unauthorized' });
  });
  await expect(scene.connection.get('/a')).rejects.toThrow('Unauthorized');
});

it('reads over another connection once one has not answered in time, and its watches go on', async () => {
  let isStuck = true;
  const scene = await serve((_line, answer) => (isStuck ? undefined : answer(200, { fine: true })));
  const { ended } = await watch(scene, '/watch/1');
  await expect(scene.connection.get('/a')).rejects.toThrow('does not answer');
  isStuck = false;
  expect(await scene.connection.get('/a')).toEqual({ fine: true });
  expect(scene.sockets.size).toBe(2);
  expect(await Promise.race([ended.then(() => 'ended'), Promise.resolve('open')])).toBe('open');
});

it('reads again when the connection broke', async () => {
  const scene = await serve(fine);
  const { ended } = await watch(scene, '/watch/1');
  for (const socket of scene.sockets) socket.destroy();
  await ended;
  expect(await scene.connection.get('/a')).toEqual({ fine: true });
});

it('does not send what has waited for its turn longer than it may take', async () => {
  const scene = await serve(() => undefined);
  // No request waits for its turn longer than half a second for each 64 before it.
  const many = Array.from({ length: 200 }, (_, i) => scene.connection.get(`/${i}`).catch(() => undefined));
  const late = scene.connection.ask({ method: 'PATCH', path: '/late', body: {}, timeoutMs: 100 });
  await expect(late).rejects.toThrow('was not asked in time, because this process is too busy');
  await Promise.all(many);
  expect(scene.requests.filter((line) => line.includes('late'))).toEqual([]);
});
