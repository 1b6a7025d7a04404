import { connect, type Socket } from 'node:net';

export interface Reply {
  readonly headers: string;
  readonly body: string;
}

const ANSWER_MS = 15_000;
const INBOX = '_FUZZ';
const CRLF = Buffer.from('\r\n');

/** NATS as bytes on a socket. It can send what a client library would refuse to send. */
export class RawClient {
  private readonly waiting = new Map<string, (reply: Reply) => void>();
  private readonly pongs: { readonly resolve: () => void; readonly reject: (error: Error) => void }[] = [];
  private buffer = Buffer.alloc(0);
  private requests = 0;
  private gone: Error | undefined;

  private constructor(private readonly socket: Socket) {
    socket.on('data', (chunk) => this.take(chunk));
    socket.on('error', (error) => (this.gone = error));
    socket.on('close', () => {
      this.gone ??= new Error('the server closed the connection');
      for (const { reject } of this.pongs.splice(0)) reject(this.gone);
    });
  }

  static async connect(url: string): Promise<RawClient> {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    const client = new RawClient(socket);
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    socket.write(
      `CONNECT ${JSON.stringify({ verbose: false, pedantic: false, headers: true, no_responders: true, lang: 'raw', version: '0' })}\r\nSUB ${INBOX}.* 1\r\n`,
    );
    await client.flush();
    return client;
  }

  /** Whether the server closed this connection. */
  get closed(): boolean {
    return this.gone !== undefined;
  }

  publish(subject: string, body: Buffer, headers: Readonly<Record<string, string>> = {}, reply = ''): void {
    const lines = Object.entries(headers)
      .map(([key, value]) => `${key}: ${value}\r\n`)
      .join('');
    const head = lines === '' ? Buffer.alloc(0) : Buffer.from(`NATS/1.0\r\n${lines}\r\n`);
    const sizes = head.length === 0 ? `${body.length}` : `${head.length} ${head.length + body.length}`;
    this.socket.write(
      Buffer.concat([
        Buffer.from(`${head.length === 0 ? 'PUB' : 'HPUB'} ${subject} ${reply} ${sizes}\r\n`),
        head,
        body,
        CRLF,
      ]),
    );
  }

  /** The answer of the server or of a service. Rejects if there is none in time. */
  request(subject: string, body: Buffer, headers: Readonly<Record<string, string>> = {}): Promise<Reply> {
    const inbox = `${INBOX}.${(this.requests += 1)}`;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.waiting.delete(inbox);
        reject(new Error(`no answer to ${subject} in ${ANSWER_MS / 1_000} s`));
      }, ANSWER_MS);
      this.waiting.set(inbox, (reply) => {
        clearTimeout(timer);
        this.waiting.delete(inbox);
        resolve(reply);
      });
      this.publish(subject, body, headers, inbox);
    });
  }

  /** Resolves when the server has read everything that was sent. */
  async flush(): Promise<void> {
    if (this.gone !== undefined) throw this.gone;
    await new Promise<void>((resolve, reject) => {
      this.pongs.push({ resolve, reject });
      this.socket.write('PING\r\n');
    });
  }

  close(): void {
    this.socket.destroy();
  }

  private take(chunk: Buffer): void {
    this.buffer = Buffer.concat([this.buffer, chunk]);
    for (;;) {
      const end = this.buffer.indexOf(CRLF);
      if (end < 0) return;
      const line = this.buffer.subarray(0, end).toString();
      const [word = '', ...rest] = line.split(' ');
      const size = word === 'MSG' || word === 'HMSG' ? Number(rest.at(-1)) : -1;
      if (size >= 0 && this.buffer.length < end + 4 + size) return;
      const payload = this.buffer.subarray(end + 2, end + 2 + Math.max(0, size));
      this.buffer = this.buffer.subarray(end + 2 + (size < 0 ? 0 : size + 2));
      if (size >= 0) this.answer(rest[0] as string, payload, word === 'HMSG' ? Number(rest.at(-2)) : 0);
      else if (word === 'PING') this.socket.write('PONG\r\n');
      else if (word === 'PONG') this.pongs.shift()?.resolve();
    }
  }

  private answer(inbox: string, payload: Buffer, headed: number): void {
    this.waiting.get(inbox)?.({
      headers: payload.subarray(0, headed).toString(),
      body: payload.subarray(headed).toString(),
    });
  }
}
