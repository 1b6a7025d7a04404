import { basename, dirname, resolve } from 'node:path';
import type { NewObject } from '#libs/client';
import { isObject, type Manifest } from '#libs/manifests';
import { UsageError } from '../output/exit.js';
import { checkObjectName, objectOfFile } from './object-file.js';

export const FILE_FIELD = 'spec.contentFrom.file';

export interface LocalFile {
  /** As it is published. */
  readonly document: Manifest;
  readonly file?: NewObject;
}

/**
 * A manifest whose `contentFrom` names a local file (`file`, relative to the manifest) gets its `object` and `sha256`.
 * Only the CLI knows `file`. Throws UsageError if there is no such file.
 */
export async function readLocalFile(document: Manifest, manifestPath: string): Promise<LocalFile> {
  const { spec } = document;
  const from = isObject(spec) ? spec['contentFrom'] : undefined;
  if (document.kind !== 'File' || !isObject(spec) || !isObject(from) || typeof from['file'] !== 'string')
    return { document };
  const { file: path, ...rest } = from;
  const folder = manifestPath === 'stdin' ? '.' : dirname(manifestPath);
  const { object, sha256 } = rest;
  const name = typeof object === 'string' ? object : basename(path as string);
  if (name !== object) checkObjectName(name, '"object" next to "file"');
  const file = await objectOfFile(resolve(folder, path as string), name);
  if (sha256 !== undefined && sha256 !== file.sha256)
    throw new UsageError(`${String(path)} has the sha256 ${file.sha256}, not ${JSON.stringify(sha256)}`);
  const contentFrom = { ...rest, object: file.object, sha256: file.sha256 };
  return { document: { ...document, spec: { ...spec, contentFrom } }, file };
}
