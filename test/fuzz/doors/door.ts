import type { Junk } from '../junk.js';

/** One message to be sent, and what has to come of it. */
export interface DeliveredJunk extends Junk {
  readonly subject: string;
  readonly headers?: Readonly<Record<string, string>>;
}
