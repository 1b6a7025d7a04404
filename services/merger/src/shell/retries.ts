import { Injectable } from '@nestjs/common';
import { CHANGES, changeId, changeSequence, desiredSubject, isChangeId } from '#libs/contracts';
import type { Answer } from '#libs/kernel';
import type { Bus } from '#libs/bus';

/** Publishes the content of a change again, as a new change that names it. */
@Injectable()
export class Retries {
  constructor(private readonly bus: Bus) {}

  async retry(change: string, by: string): Promise<Answer> {
    const stored = isChangeId(change) ? await this.bus.stored(CHANGES, { seq: changeSequence(change) }) : null;
    if (stored === null) return { ok: false, code: 'not-found', message: `no change ${change} was ever published` };
    const body = asChange(stored.string());
    if (body === undefined)
      return { ok: false, code: 'conflict', message: `${change} was not JSON, and is not published again` };
    const ack = await this.bus.publish(
      desiredSubject('retry'),
      JSON.stringify({ ...body, author: by, retryOf: change }),
    );
    return { ok: true, body: { change: changeId(ack.seq), retryOf: change } };
  }
}

/** A change may have been published as one bare manifest. */
function asChange(text: string): object | undefined {
  try {
    const body = JSON.parse(text) as object | null;
    if (typeof body !== 'object' || body === null) return undefined;
    return 'kind' in body ? { apply: [body] } : body;
  } catch {
    return undefined;
  }
}
