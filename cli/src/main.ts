import { processIo } from './io.js';
import { runCli } from './run-cli.js';

void runCli(process.argv.slice(2), processIo()).then((exit) => {
  if (exit !== undefined) process.exit(exit);
});
