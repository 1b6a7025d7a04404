import type { Junk } from '../junk.js';

/** One message to send, and the expected result. */
export interface DeliveredJunk extends Junk {
  readonly subject: string;
  readonly headers?: Readonly<Record<string, string>>;
}
