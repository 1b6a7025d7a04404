import { RejectedError } from './exit.js';

/** What NATS carries in one message, less what the merger adds. */
const MOST_BYTES = 900 * 1_024;

/** Refuses a change that is too large before it is sent. Throws RejectedError that names both sizes. */
export function checkSize(body: string): void {
  const bytes = Buffer.byteLength(body);
  if (bytes <= MOST_BYTES) return;
  throw new RejectedError([
    {
      fragment: '',
      field: '',
      code: 'too-large',
      nodes: [],
      message: `the change has ${Math.ceil(bytes / 1_024)} KiB, and a change has at most ${MOST_BYTES / 1_024} KiB: publish it as several changes`,
    },
  ]);
}
