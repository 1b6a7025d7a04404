import { findVmImage } from './image.js';

findVmImage().catch((error: Error & { readonly stderr?: string }) => {
  process.stdout.write(`${(error.stderr ?? error.message).trim().split('\n').slice(-3).join('; ')}\n`);
  process.exitCode = 1;
});
