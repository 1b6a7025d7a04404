import { Text } from '#libs/manifests';
import { AskedRequest, HASH_OR_PREFIX, PageRequest, SOME_WORDS } from './forms.js';

/** `ops.known-bad.list`. */
export class ListKnownBadRequest extends PageRequest {}

/** `ops.known-bad.forgive`: the reason is recorded, and must be given. */
export class ForgiveRequest extends AskedRequest {
  @Text(HASH_OR_PREFIX) readonly hash!: string;
  @Text(SOME_WORDS) readonly reason!: string;
}
