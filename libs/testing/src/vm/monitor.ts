import { connect } from 'node:net';
import { createInterface } from 'node:readline';

interface MonitorReply {
  readonly return?: unknown;
  readonly error?: { readonly desc: string };
}

/**
 * Has qemu write all that the machine is, memory and devices, to a file; then qemu ends. The disk stands still from
 * there on.
 */
export async function saveState(monitor: string, file: string): Promise<void> {
  const socket = connect(monitor);
  const waiting: ((said: MonitorReply) => void)[] = [];
  const lines = createInterface({ input: socket });
  // It says the socket's errors once more: what ends without a goodbye is an end.
  lines.on('error', () => undefined);
  lines.on('line', (line) => {
    const said = JSON.parse(line) as MonitorReply;
    if (said.return !== undefined || said.error !== undefined) waiting.shift()?.(said);
  });
  const ended = new Promise<void>((resolve) => socket.on('error', () => undefined).on('close', () => resolve()));
  const call = async (execute: string, args: object = {}): Promise<unknown> => {
    const said = await new Promise<MonitorReply>((resolve) => {
      waiting.push(resolve);
      socket.write(`${JSON.stringify({ execute, arguments: args })}\n`);
    });
    if (said.error !== undefined) throw new Error(`qemu: ${execute}: ${said.error.desc}`);
    return said.return;
  };
  await call('qmp_capabilities');
  await call('migrate-set-parameters', { 'max-bandwidth': 10 ** 10 });
  // Not stopped first: what is saved stopped comes back stopped.
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
