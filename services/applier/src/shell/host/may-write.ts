import { accessSync, constants } from 'node:fs';

/** Whether this process may write there: a hardened unit has parts of the machine read-only, or hides them. */
export function mayWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
