const STRICT = new TextDecoder('utf-8', { fatal: true });
const LOOSE = new TextDecoder();

/**
 * The text of a message. Bytes that are no UTF-8 become halves of surrogate pairs, which no UTF-8 can say: so that who
 * checks the text finds them where they stand, and nobody takes a replacement character for what was sent.
 */
export function messageText(data: Uint8Array): string {
  try {
    return STRICT.decode(data);
  } catch {
    return LOOSE.decode(data).replaceAll('\ufffd', '\ud800');
  }
}
