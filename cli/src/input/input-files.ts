import { readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readBounded, textOf, wordsFor } from './bounded-file.js';
import { UsageError } from '../output/exit.js';
import type { Io } from '../output/io.js';

export interface InputText {
  /** The name that refusals use. */
  readonly name: string;
  readonly text: string;
}

const MANIFEST = /\.(ya?ml|json)$/;

/**
 * The texts that a flag names, each once: a file, the manifests of a folder in the order of their names, or `-` for
 * stdin.
 */
export async function readInputs(paths: readonly string[], io: Io, flag = '-f'): Promise<readonly InputText[]> {
  const inputs: InputText[] = [];
  const read = new Set<string>();
  for (const path of paths) {
    if (path === '-') inputs.push({ name: 'stdin', text: await io.stdin() });
    else
      inputs.push(
        ...filesOf(path, flag)
          .filter((file) => !read.has(resolve(file)) && read.add(resolve(file)))
          .map((file) => ({ name: file, text: textOf(readBounded(file, `${flag} ${file}`), file) })),
      );
  }
  return inputs;
}

function filesOf(path: string, flag: string): string[] {
  let isFolder: boolean;
  try {
    isFolder = statSync(path).isDirectory();
  } catch (error) {
    throw new UsageError(`${flag} ${path}: ${wordsFor(error, path)}`);
  }
  if (!isFolder) return [path];
  const files = readdirSync(path)
    .filter((name) => MANIFEST.test(name))
    .sort();
  if (files.length === 0) throw new UsageError(`${flag} ${path}: the folder contains no *.yaml, *.yml or *.json`);
  return files.map((name) => join(path, name));
}
