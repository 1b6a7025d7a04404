/**
 * A text on one line: what commands and servers print goes into reasons, and a line break or a control character in
 * them could forge a line on a terminal.
 */
export const oneLine = (text: string): string => text.replaceAll(NOT_SHOWN, ' ').trim();

/** Control characters, line separators and halves of characters, with the spaces that follow them. */
const NOT_SHOWN = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]+ */gu;
