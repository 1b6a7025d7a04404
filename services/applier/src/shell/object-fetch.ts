import { createHash } from 'node:crypto';
import type { NodeBus, ObjectInfo } from '#libs/client';
import type { ObjectRef } from '#libs/manifests/lean';
import { Turns } from '#libs/process';
import type { Outcomes } from '../core/index.js';
import type { OpenFile } from './open-file.js';
import type { OriginalStore } from './state/original-store.js';

/** How many chunks are requested at once. A download needs this much memory. */
const AHEAD = 4;
/**
 * The same for all nodes that share the process, and perhaps a connection. NATS closes a connection on which too much
 * waits for the client. On a slow link, all of these have to arrive before the first request times out.
 */
const turns = new Turns(16);

export interface ObjectFetch {
  readonly ref: ObjectRef;
  readonly contents: OriginalStore;
  /** Asks NATS. Throws when it does not answer. */
  readonly ask: <T>(what: string, ask: (bus: NodeBus) => Promise<T>) => Promise<T>;
  /** Throws when there is not enough space for the content. */
  readonly requireSpace: (bytes: number) => Promise<void>;
  /** Whether to stop, and continue later. */
  readonly isOver: () => boolean;
}

type Trouble = NonNullable<Outcomes['fetch-object']>;

/**
 * Downloads an object into the state folder, chunk by chunk, and checks its sha256. Continues a download that was
 * interrupted. Throws when NATS does not answer, and when the disk fails.
 */
export async function fetchObject(fetch: ObjectFetch): Promise<Trouble | undefined> {
  const { ref, contents, ask } = fetch;
  const { object, sha256 } = ref;
  if (await contents.has(sha256)) return undefined;
  const info = await ask('object', (bus) => bus.object(sha256));
  if (info === undefined)
    return mayCome(`the object store has no ${object} with sha256 ${sha256}: upload the file with sluice upload`);
  let isContinued = false;
  const get = (): Promise<string | Trouble> =>
    contents.receive(sha256, (part) => {
      isContinued = part.size > 0;
      return receive(part, info, fetch);
    });
  let received = await get();
  // What was there before may be damaged, or of an earlier upload.
  if (isContinued && typeof received === 'string' && received !== sha256) {
    await contents.drop(sha256);
    received = await get();
  }
  if (typeof received !== 'string') return received;
  if (received === sha256) {
    await contents.adopt(sha256);
    return undefined;
  }
  await contents.drop(sha256);
  return {
    fault: 'node',
    reason: `${object} was changed in the object store: its sha256 is ${received}, not ${sha256}. Remove it with nats stream purge OBJECTS --subject 'blobs.${sha256}.*', and upload the file again with sluice upload`,
  };
}

/** The sha256 of all that was received, or why it is not all. */
async function receive(part: OpenFile, info: ObjectInfo, fetch: ObjectFetch): Promise<string | Trouble> {
  const { ref, ask, requireSpace, isOver } = fetch;
  const { bytes, chunkBytes, sha256 } = info;
  const count = Math.ceil(bytes / chunkBytes);
  let n = Math.min(count, Math.floor(part.size / chunkBytes));
  part.truncate(Math.min(bytes, n * chunkBytes));
  await requireSpace(bytes - part.size);
  const hash = createHash('sha256');
  for await (const piece of part.pieces()) hash.update(piece);
  const coming: Promise<Uint8Array | undefined>[] = [];
  for (let next = n; n < count; n += 1) {
    if (isOver())
      return mayCome(
        `only ${Math.floor((100 * n) / count)} % of ${ref.object} (${bytes} bytes) was downloaded in half of the applyTimeout: use a longer applyTimeout`,
      );
    for (; next < count && next < n + AHEAD; next += 1) {
      const chunkNumber = next;
      const chunk = turns.take(() => ask('chunk', (bus) => bus.chunk(sha256, chunkNumber)));
      // A failure is thrown when its turn comes.
      chunk.catch(() => undefined);
      coming.push(chunk);
    }
    const chunk = await coming.shift();
    if (chunk === undefined)
      return mayCome(
        `a part of ${ref.object} is missing from the object store: upload the file again with sluice upload (sha256 ${sha256})`,
      );
    hash.update(chunk);
    await part.append(chunk);
  }
  await part.sync();
  return hash.digest('hex');
}

const mayCome = (reason: string): Trouble => ({ fault: 'node', reason, mayCome: true });
