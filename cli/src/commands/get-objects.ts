import type { FleetClient } from '#libs/client';
import { objectRefOf, type ObjectRef } from '#libs/manifests/lean';
import type { Session } from '../connection/session.js';
import { EXIT, type ExitCode } from '../output/exit.js';
import { age, table } from '../output/table.js';

/** `sluice get objects [NAME]`: what the object store has, by the name or the start of the sha256. */
export async function getObjects({ fleet, io, isJson, flags }: Session, name: string | undefined): Promise<ExitCode> {
  const all = await (await fleet()).objects();
  const found = all
    .filter(({ isWhole }) => isWhole)
    .filter(({ object, sha256 }) => name === undefined || object === name || sha256.startsWith(name))
    .toSorted((a, b) => a.object.localeCompare(b.object) || a.storedMs - b.storedMs);
  if (name !== undefined && found.length === 0)
    throw new Error(`${JSON.stringify(name)} not found in objects: list them with sluice get objects`);
  const shown = found.map(({ object, sha256, bytes }) => ({ object, sha256, bytes }));
  if (flags.output === 'yaml') io.out((await import('yaml')).stringify(shown).trimEnd());
  else if (isJson) io.out(JSON.stringify(shown));
  else if (found.length === 0) io.say('no objects found');
  else
    io.out(
      table(
        ['OBJECT', 'BYTES', 'SHA256', 'AGE'],
        found.map(({ object, bytes, sha256, storedMs }) => [
          object,
          String(bytes),
          sha256,
          age(new Date(storedMs).toISOString(), io.now()),
        ]),
      ),
    );
  return EXIT.done;
}

/** In bytes, by sha256. */
export type ObjectSizes = ReadonlyMap<string, number>;

/** The sizes of the objects that these refer to, as far as the object store has them. */
export async function objectSizes(
  fleet: FleetClient,
  entries: readonly Parameters<typeof objectRefOf>[0][],
): Promise<ObjectSizes> {
  const refers = entries.some((entry) => objectRefOf(entry) !== undefined);
  const objects = refers ? await fleet.objects() : [];
  return new Map(objects.map(({ sha256, bytes }) => [sha256, bytes]));
}

/** A description of content that is not shown. */
export const objectText = ({ object, sha256 }: ObjectRef, sizes: ObjectSizes): string =>
  `${object}: binary, ${sizes.get(sha256) ?? 'unknown'} bytes, sha256 ${sha256}`;
