import { join } from 'node:path';

/** A folder next to the sources of this one. The build contains only code. */
export function sources(folder: string): string {
  const here = __dirname.split(/[\\/]dist[\\/]/);
  return join(here.length > 1 ? join(here[0] as string, 'libs/testing/src/kube') : __dirname, folder);
}
