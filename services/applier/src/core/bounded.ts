/** A report must fit into a message and stay readable: what is longer is cut, and says so. */
const MOST_ITEMS = 100;
const MOST_ITEM_CHARS = 256;
const MOST_REASON_CHARS = 4_096;

const cut = (text: string, most: number): string => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);

/** A reason of at most 4,096 characters. */
export const boundedReason = (reason: string): string => cut(reason, MOST_REASON_CHARS);

/** At most 100 items of at most 256 characters; the last says how many more there are. */
export function boundedList(items: readonly string[]): readonly string[] {
  if (items.length <= MOST_ITEMS) return items.map((item) => cut(item, MOST_ITEM_CHARS));
  const shown = items.slice(0, MOST_ITEMS - 1).map((item) => cut(item, MOST_ITEM_CHARS));
  return [...shown, `… and ${items.length - shown.length} more`];
}
