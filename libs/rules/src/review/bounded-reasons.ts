import { reasonFor, type Reason } from '#libs/contracts';
import { utf8Bytes } from '#libs/manifests';

/** A fact must fit into a message, and a person reads the first of them. */
const MOST_REASONS = 200;
const MOST_BYTES = 128 * 1024;
/** A reason quotes what it refuses: keys and names may be as long as a change. */
const MOST_CHARACTERS = 1_000;

/** As many reasons as an answer can carry, with texts that a person can read, and how many more there are. */
export function boundReasons(reasons: readonly Reason[]): readonly Reason[] {
  const shown: Reason[] = [];
  let bytes = 0;
  for (const reason of reasons) {
    const short = shortened(reason);
    bytes += utf8Bytes(JSON.stringify(short));
    if (shown.length >= MOST_REASONS || bytes > MOST_BYTES) break;
    shown.push(short);
  }
  const left = reasons.length - shown.length;
  return left === 0 ? shown : [...shown, reasonFor({}, 'truncated', `and ${left} more reasons`)];
}

function shortened(reason: Reason): Reason {
  const { fragment, field, message } = reason;
  if (fragment.length + field.length + message.length <= MOST_CHARACTERS) return reason;
  return { ...reason, fragment: short(fragment), field: short(field), message: short(message) };
}

/** Not in the middle of a pair: half of one has no UTF-8. */
const short = (text: string): string =>
  text.length <= MOST_CHARACTERS ? text : `${text.slice(0, MOST_CHARACTERS).replace(/[\ud800-\udbff]$/, '')}…`;
