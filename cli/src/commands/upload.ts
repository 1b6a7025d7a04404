import { basename } from 'node:path';
import { stringify } from 'yaml';
import type { NewObject } from '#libs/client';
import type { Session } from '../connection/session.js';
import { checkObjectName, objectOfFile } from '../input/object-file.js';
import { EXIT, type ExitCode } from '../output/exit.js';

/** `sluice upload FILE`: puts a file into the object store, and prints what a File needs to refer to it. */
export async function upload(session: Session, path: string, flags: { readonly name?: string }): Promise<ExitCode> {
  const name = flags.name ?? basename(path);
  checkObjectName(name, '--name');
  const file = await objectOfFile(path, name);
  const { object, sha256, bytes } = file;
  const isNew = await uploadFile(session, file);
  if (session.isJson) session.io.out(JSON.stringify({ object, sha256, bytes, isNew }));
  else session.io.out(stringify({ contentFrom: { object, sha256 } }).trimEnd());
  return EXIT.done;
}

/** Uploads a file unless the object store has it. Returns whether it was uploaded. */
export async function uploadFile({ fleet, io }: Session, file: NewObject): Promise<boolean> {
  const isNew = await (await fleet()).upload(file);
  io.say(`${file.object}: ${isNew ? `uploaded ${file.bytes} bytes` : 'is in the object store already'}`);
  return isNew;
}
