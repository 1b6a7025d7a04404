import type { JsMsg } from '@nats-io/jetstream';
import { headers, type MsgHdrs } from '@nats-io/nats-core';

/** A message for handlers, as text, so that each handler decodes it as its subject requires. */
export interface BusMessage {
  readonly subject: string;
  /** In its stream; 0 for core NATS. */
  readonly sequence: number;
  readonly text: string;
  /** RFC 3339, when the server stored it; empty for core NATS. */
  readonly time: string;
  readonly headers: Readonly<Record<string, string>>;
}

export function busMessage(message: JsMsg): BusMessage {
  return {
    subject: message.subject,
    sequence: message.seq,
    text: messageText(message.data),
    time: message.timestamp,
    headers: plainHeaders(message),
  };
}

const STRICT = new TextDecoder('utf-8', { fatal: true });
const LOOSE = new TextDecoder();

/** The text of a message. Invalid UTF-8 becomes halves of surrogate pairs, which a check detects. */
export function messageText(data: Uint8Array): string {
  try {
    return STRICT.decode(data);
  } catch {
    return LOOSE.decode(data).replaceAll('\ufffd', '\ud800');
  }
}

/** The headers of a message to send. */
export function headersOf(values: Readonly<Record<string, string>>): MsgHdrs {
  const result = headers();
  for (const [name, value] of Object.entries(values)) result.set(name, value);
  return result;
}

/** The client library reads headers only when asked, and throws for a name that is not ASCII. */
interface MessageHead {
  readonly headers?: MsgHdrs | undefined;
}

/** The headers of a message by name; none if they cannot be read. */
export function plainHeaders(message: MessageHead): Readonly<Record<string, string>> {
  const headers = readHeaders(message);
  return headers === undefined ? {} : Object.fromEntries(headers.keys().map((key) => [key, headers.get(key)]));
}

/** Whether a message of a bucket marks its key as deleted. */
export function isDeletion(message: MessageHead): boolean {
  const operation = readHeaders(message)?.get('KV-Operation') ?? '';
  return operation === 'DEL' || operation === 'PURGE';
}

/** The same for a message that was read from the stream's leader. */
export const isStoredDeletion = (message: { readonly header?: MsgHdrs | undefined }): boolean =>
  isDeletion({
    get headers() {
      return message.header;
    },
  });

function readHeaders(message: MessageHead): MsgHdrs | undefined {
  try {
    return message.headers;
  } catch {
    return undefined;
  }
}
