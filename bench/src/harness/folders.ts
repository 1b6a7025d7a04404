import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PartContext } from './part.js';

/** The measured package: the folder of package.json. */
export const ROOT = join(__dirname, '..', '..', '..', '..');
/** Its compiled code. */
export const DIST = join(ROOT, 'dist');
export const SLUICE = join(ROOT, 'bin', 'sluice');

/** A folder that is deleted at the end of the part. */
export function temporaryFolder(context: Pick<PartContext, 'atEnd'>, name: string): string {
  const path = mkdtempSync(join(tmpdir(), `sluice-bench-${name}-`));
  const remove = (): void => rmSync(path, { recursive: true, force: true, maxRetries: 3 });
  // Also if the bench is interrupted.
  process.once('exit', remove);
  context.atEnd(() => {
    process.removeListener('exit', remove);
    remove();
  });
  return path;
}
