import type { MsgHdrs } from '@nats-io/nats-core';

/** Anything with headers, which the client library reads only when they are asked for: and throws for a name that is not ASCII. */
interface Headed {
  readonly headers?: MsgHdrs | undefined;
}

/** The headers of a message by name. Whoever sends may write what it likes there: what cannot be read counts as none. */
export function plainHeaders(message: Headed): Readonly<Record<string, string>> {
  const headers = readHeaders(message);
  return headers === undefined ? {} : Object.fromEntries(headers.keys().map((key) => [key, headers.get(key)]));
}

/** Whether a message of a bucket says that its key was deleted. */
export function isDeletion(message: Headed): boolean {
  const operation = readHeaders(message)?.get('KV-Operation') ?? '';
  return operation === 'DEL' || operation === 'PURGE';
}

/** The same for a message that the stream's leader was asked for. */
export const isStoredDeletion = (message: { readonly header?: MsgHdrs | undefined }): boolean =>
  isDeletion({
    get headers() {
      return message.header;
    },
  });

function readHeaders(message: Headed): MsgHdrs | undefined {
  try {
    return message.headers;
  } catch {
    return undefined;
  }
}
