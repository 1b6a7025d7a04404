import { connect, type Socket } from 'node:net';

type Answer = { readonly return?: unknown; readonly error?: { readonly desc: string } };

/** The result of a command in the guest. */
export interface GuestResult {
  readonly code: number;
  readonly out: string;
  readonly error: string;
}

const SYNC_MS = 3_000;
const FIRST_LOOK_MS = 10;
const LAST_LOOK_MS = 200;
const CHUNK = 256 * 1024;

/** Thrown if there is no answer: the guest does not run, is still booting, or went down during the command. */
export class NoAnswer extends Error {}

/**
 * One conversation with qemu's guest agent. Its answers have no id, so each conversation starts with its own number,
 * and only one runs at a time.
 */
export class GuestAgent {
  private buffer = '';
  private closed = false;
  private wake: () => void = () => undefined;

  private constructor(private readonly socket: Socket) {
    socket.on('data', (data: Buffer) => {
      this.buffer += data.toString();
      this.wake();
    });
    socket
      .on('error', () => undefined)
      .on('close', () => {
        this.closed = true;
        this.wake();
      });
  }

  /** Throws NoAnswer if the agent does not answer. */
  static async open(path: string): Promise<GuestAgent> {
    const socket = connect(path);
    await new Promise<void>((resolve, reject) =>
      socket.once('connect', resolve).once('error', (error) => reject(new NoAnswer(error.message))),
    );
    const agent = new GuestAgent(socket);
    const timer = setTimeout(() => socket.destroy(), SYNC_MS);
    const id = Math.floor(Math.random() * 2 ** 31);
    agent.send('guest-sync', { id });
    try {
      while ((await agent.answer()).return !== id);
    } finally {
      clearTimeout(timer);
    }
    return agent;
  }

  close(): void {
    this.socket.destroy();
  }

  /** Runs a program until it ends or the time is over. After that it keeps running, and its result is unknown. */
  async run(argv: readonly string[], input: string, timeoutMs: number): Promise<GuestResult> {
    const [path = '', ...arg] = argv;
    const { pid } = (await this.call('guest-exec', {
      path,
      arg,
      'capture-output': true,
      'input-data': Buffer.from(input).toString('base64'),
    })) as { pid: number };
    const endMs = performance.now() + timeoutMs;
    for (let waitMs = FIRST_LOOK_MS; ; waitMs = Math.min(LAST_LOOK_MS, waitMs * 1.5)) {
      const status = (await this.call('guest-exec-status', { pid })) as {
        exited: boolean;
        exitcode?: number;
        signal?: number;
        'out-data'?: string;
        'err-data'?: string;
      };
      const text = (data = ''): string => Buffer.from(data, 'base64').toString();
      if (status.exited)
        return {
          code: status.exitcode ?? 128 + (status.signal ?? 0),
          out: text(status['out-data']),
          error: text(status['err-data']),
        };
      if (performance.now() > endMs)
        throw new Error(`${argv.join(' ').slice(0, 200)} did not end in ${timeoutMs / 1_000} s`);
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  }

  async put(path: string, content: Buffer): Promise<void> {
    const handle = await this.call('guest-file-open', { path, mode: 'w' });
    for (let at = 0; at < content.length; at += CHUNK)
      await this.call('guest-file-write', { handle, 'buf-b64': content.subarray(at, at + CHUNK).toString('base64') });
    await this.call('guest-file-close', { handle });
  }

  private async call(execute: string, args: object): Promise<unknown> {
    this.send(execute, args);
    const answer = await this.answer();
    if (answer.error !== undefined) throw new Error(`${execute}: ${answer.error.desc}`);
    return answer.return;
  }

  private send(execute: string, args: object): void {
    this.socket.write(`${JSON.stringify({ execute, arguments: args })}\n`);
  }

  private async answer(): Promise<Answer> {
    for (;;) {
      const end = this.buffer.indexOf('\n');
      if (end >= 0) {
        const line = this.buffer.slice(0, end);
        this.buffer = this.buffer.slice(end + 1);
        return JSON.parse(line) as Answer;
      }
      if (this.closed) throw new NoAnswer('the guest agent does not answer');
      await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }
}
