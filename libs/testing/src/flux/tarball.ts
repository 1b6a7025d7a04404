import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** Paths and texts. */
export type Files = Readonly<Record<string, string>>;

/** A gzipped tarball of these files. */
export function tarball(files: Files): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-tarball-'));
  try {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
    return execFileSync('tar', ['-czf', '-', '-C', folder, '.']);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
