import { Fields } from '../shape/description.js';
import { CHANGE_ID_PATTERN, DNS_LABEL, HASH_PATTERN, isNodeName } from '#libs/contracts';
import { Optional } from '../shape/checked.js';
import { patternForm, Text, Whole, type TextForm } from '../shape/forms.js';

/** The largest page, and the default. */
const MAX_PAGE = 500;
/** A longer text of a person is a mistake, or does not belong in a ledger. */
const MAX_WORDS = 4_096;

const form = (
  code: string,
  holds: (text: string) => boolean,
  message: string,
  schema: TextForm['schema'],
): TextForm => ({ code, problem: (text) => (holds(text) ? undefined : message), schema });

export const CHANGE_ID = patternForm('bad-change', CHANGE_ID_PATTERN, 'must be the id of a change, such as c12');
export const NODE_NAME = form('bad-node', isNodeName, 'must be the name of a node: a DNS subdomain', {
  minLength: 1,
  maxLength: 253,
  pattern: '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$',
});
export const POOL_NAME = patternForm('bad-pool', DNS_LABEL, 'must be the name of a pool: a DNS label');
export const SOURCE_NAME = patternForm('bad-source', DNS_LABEL, 'must be the name of a source: a DNS label');
export const HASH = patternForm('bad-hash', HASH_PATTERN, 'must be a sha256 in lower-case hex');
/** As git does, a prefix is enough where it is unique. */
export const HASH_OR_PREFIX = patternForm(
  'bad-hash',
  /^[0-9a-f]{7,64}$/,
  'must be a sha256 in lower-case hex, or at least its first 7 digits',
);
export const WORDS = form('too-long', (text) => text.length <= MAX_WORDS, `must have at most ${MAX_WORDS} characters`, {
  maxLength: MAX_WORDS,
});
export const SOME_WORDS = form(
  'required',
  (text) => text.trim() !== '' && text.length <= MAX_WORDS,
  `is required, at most ${MAX_WORDS} characters`,
  { maxLength: MAX_WORDS, pattern: '\\S' },
);

/** A request that may name who asks. */
@Fields({ by: 'Who asks. Recorded with the decision.' })
export class AskedRequest {
  @Optional() @Text(WORDS) readonly by: string = 'nats';
}

/** A request that may say who asks and why. */
@Fields({ reason: 'Why. Recorded with the decision.' })
export class ReasonedRequest extends AskedRequest {
  @Optional() @Text(WORDS) readonly reason: string = '';
}

/** A request for one page of a list. */
@Fields({
  cursor: 'Where the page starts: `next` of the page before. Without it, the first page.',
  limit: 'How many items to return. Default: 500, which is also the maximum.',
})
export class PageRequest {
  @Optional() @Text(WORDS) readonly cursor: string = '';
  @Optional() @Whole(1, MAX_PAGE) readonly limit: number = MAX_PAGE;
}
