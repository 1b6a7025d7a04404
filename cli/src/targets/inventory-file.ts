import { dirname, resolve } from 'node:path';
import { parseDocument } from 'yaml';
import { readShape, type Class } from '#libs/manifests';
import { readBounded, textOf } from '../input/bounded-file.js';
import { UsageError } from '../output/exit.js';

export interface InventoryForm<T extends object> {
  readonly type: Class<T>;
  /** A file of this form, for people. */
  readonly example: string;
}

/** What an inventory file lists. */
export interface FileListing<T> {
  /** Tells it from other files of the same kind, whose targets other copies serve. */
  readonly name: string | undefined;
  readonly entries: readonly T[];
}

/** An inventory file that was read. */
export interface InventoryFile<T> {
  readonly value: T;
  /** The file in messages. */
  readonly place: string;
  /** A path in the file, which is relative to its folder. */
  pathOf(path: string): string;
}

/** Reads a YAML or JSON file that lists targets. Throws UsageError with every reason. */
export function readInventoryFile<T extends object>(
  file: string,
  { type, example }: InventoryForm<T>,
): InventoryFile<T> {
  const place = `--inventory ${file}`;
  const document = parseDocument(textOf(readBounded(file, place), file), { prettyErrors: true });
  const [error] = document.errors;
  if (error !== undefined) throw new UsageError(`${place} is not valid YAML: ${error.message}`);
  const { value, problems } = readShape(type, document.toJS());
  if (problems.length > 0) {
    const lines = problems.map(({ at, message }) => `${place}: ${at === '' ? '' : `${at}: `}${message}`);
    throw new UsageError([...lines, 'The file looks like this:', example].join('\n'));
  }
  return { value, place, pathOf: (path) => resolve(dirname(file), path) };
}
