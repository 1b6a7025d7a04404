import { connect } from 'node:net';
import { createInterface } from 'node:readline';

interface MonitorReply {
  readonly return?: unknown;
  readonly error?: { readonly desc: string };
}

/**
 * Makes qemu write the state of the machine, memory and devices, to a file. Then qemu ends. The disk does not change
 * during that.
 */
export async function saveState(monitor: string, file: string): Promise<void> {
  const socket = connect(monitor);
  const waiting: ((reply: MonitorReply) => void)[] = [];
  const lines = createInterface({ input: socket });
  // It repeats the errors of the socket. A connection that ends without a goodbye counts as ended.
  lines.on('error', () => undefined);
  lines.on('line', (line) => {
    const reply = JSON.parse(line) as MonitorReply;
    if (reply.return !== undefined || reply.error !== undefined) waiting.shift()?.(reply);
  });
  const ended = new Promise<void>((resolve) => socket.on('error', () => undefined).on('close', () => resolve()));
  const call = async (execute: string, args: object = {}): Promise<unknown> => {
    const reply = await new Promise<MonitorReply>((resolve) => {
      waiting.push(resolve);
      socket.write(`${JSON.stringify({ execute, arguments: args })}\n`);
    });
    if (reply.error !== undefined) throw new Error(`qemu: ${execute}: ${reply.error.desc}`);
    return reply.return;
  };
  await call('qmp_capabilities');
  await call('migrate-set-parameters', { 'max-bandwidth': 10 ** 10 });
  // Not stopped first: a machine that was stopped when it was saved is stopped after it is restored.
  await call('migrate', { uri: `exec:cat > '${file}'` });
  for (;;) {
    const { status } = (await call('query-migrate')) as { readonly status: string };
    if (status === 'completed') break;
    if (status === 'failed') throw new Error('qemu could not save its state');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  void call('quit');
  await ended;
}
