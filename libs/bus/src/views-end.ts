import { VIEW_BUCKETS, type ViewBucket } from '#libs/contracts';
import type { Bus } from './connection.js';
import { kvStream } from './topology.js';
import { shownSequence } from './view-writer.js';

/** The ledger sequence that the newest value of each bucket shows: one above the ledger's end tells of a restored backup. */
export async function newestViews(bus: Bus): Promise<ReadonlyMap<ViewBucket, number>> {
  const found = await Promise.all(VIEW_BUCKETS.map(async (bucket) => [bucket, await newestOf(bus, bucket)] as const));
  return new Map(found);
}

async function newestOf(bus: Bus, bucket: ViewBucket): Promise<number> {
  const { state } = await bus.streamInfo(kvStream(bucket));
  if (state.messages === 0) return 0;
  const message = await bus.stored(kvStream(bucket), { seq: state.last_seq });
  return message === null ? 0 : sequenceShown(message.string());
}

function sequenceShown(text: string): number {
  try {
    return shownSequence((JSON.parse(text) as { readonly ledger?: unknown } | null)?.ledger);
  } catch {
    return 0;
  }
}

/** The ledger sequence that one value shows, as the stream's leader has it. */
export async function sequenceAt(bus: Bus, bucket: string, subject: string): Promise<number> {
  const message = await bus.stored(kvStream(bucket), { last_by_subj: subject });
  return message === null ? 0 : sequenceShown(message.string());
}
