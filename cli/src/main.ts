import { processIo } from './output/io.js';
import { runCli } from './run-cli.js';

void runCli(process.argv.slice(2), processIo()).then(async (exit) => {
  if (exit === undefined) return;
  // A pipe accepts 64 KiB at a time, and an exit does not wait for the rest.
  await Promise.all([flushed(process.stdout), flushed(process.stderr)]);
  process.exit(exit);
});

const flushed = (stream: NodeJS.WriteStream): Promise<void> =>
  new Promise((resolve) => {
    stream.write('', () => resolve());
  });
