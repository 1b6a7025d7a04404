/**
 * Certificates, as a function returns them. It decodes base64 when it stores them, and once more when it returns them,
 * so that what it returns has to be compared with what these certificates would become.
 */

/** How the parts of one text are separated. */
const SEPARATOR = '___';

/** Whether a function that was sent the one text may return the other. */
export function isReturnedAs(sent: string, returned: string): boolean {
  const got = returned.trim();
  if (sent === got) return true;
  const parts = sent.split(SEPARATOR);
  const once = parts.map(decoded);
  const twice = once.map(decoded);
  const all = [once, twice].map((list) => list.map((part) => textOf(part).trim()));
  if (all.some((list) => list.join('\n') === got || list.join(SEPARATOR) === got)) return true;
  // It finds only the file of the first part. What it returns for the others has nothing to do with them.
  return parts.length > 1 && all.some(([first = '']) => got.startsWith(first));
}

/** Whether what the function returns tells all about the text. */
export const isComparable = (sent: string): boolean => !sent.includes(SEPARATOR);

/** As Lua's mime.unb64: other characters are ignored, and so is an incomplete end. */
function decoded(text: string | Buffer): Buffer {
  const letters = (typeof text === 'string' ? text : text.toString('latin1')).replaceAll(/[^A-Za-z0-9+/=]/g, '');
  const groups = letters.match(/.{4}/g) ?? [];
  return Buffer.concat(groups.map((group) => Buffer.from(group, 'base64')));
}

/** As JSON brings it: bytes that are no UTF-8 become replacement characters. */
const textOf = (bytes: Buffer): string => bytes.toString('utf8');
