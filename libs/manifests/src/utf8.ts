/** The number of bytes of a text in UTF-8. */
export function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) continue;
    bytes += unit < 0x800 ? 1 : 2;
    // A pair takes four bytes in all; its first half was counted as three, its second as one.
    if (unit >= 0xd800 && unit < 0xdc00 && isLowSurrogate(text.charCodeAt(i + 1))) i += 1;
  }
  return bytes;
}

/** Whether a text is valid Unicode: half a surrogate pair has no UTF-8, and so no digest. */
export const isUnicode = (text: string): boolean => !LONE_SURROGATE.test(text);

const LONE_SURROGATE = /[\ud800-\udfff]/u;

const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000;
