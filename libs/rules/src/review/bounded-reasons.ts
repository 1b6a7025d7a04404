import { reasonFor, type Reason } from '#libs/contracts';
import { utf8Bytes } from '#libs/manifests';

/** A fact must fit into a message, and people read only the first ones. */
const MOST_REASONS = 200;
const MOST_BYTES = 128 * 1024;
/** A reason quotes what it refuses: keys and names may be as long as a change. */
const MOST_CHARACTERS = 1_000;

/** As many reasons as an answer can contain, with readable texts, and how many more there are. */
export function boundReasons(reasons: readonly Reason[]): readonly Reason[] {
  const result: Reason[] = [];
  let bytes = 0;
  for (const reason of reasons) {
    const short = shortened(reason);
    bytes += utf8Bytes(JSON.stringify(short));
    if (result.length >= MOST_REASONS || bytes > MOST_BYTES) break;
    result.push(short);
  }
  const left = reasons.length - result.length;
  return left === 0 ? result : [...result, reasonFor({}, 'truncated', `and ${left} more reasons`)];
}

function shortened(reason: Reason): Reason {
  const { fragment, field, message } = reason;
  if (fragment.length + field.length + message.length <= MOST_CHARACTERS) return reason;
  return { ...reason, fragment: short(fragment), field: short(field), message: short(message) };
}

/** Not in the middle of a surrogate pair: half of one has no UTF-8. */
const short = (text: string): string =>
  text.length <= MOST_CHARACTERS ? text : `${text.slice(0, MOST_CHARACTERS).replace(/[\ud800-\udbff]$/, '')}…`;
