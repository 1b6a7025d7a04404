import { MAX_DURATION_MS, Optional, Text, Whole } from '#libs/manifests';
import { AskedRequest, NODE_NAME, PageRequest, POOL_NAME, ReasonedRequest, SOME_WORDS } from './forms.js';

/** `ops.pool.list`. */
export class ListPoolsRequest extends PageRequest {}

/** `ops.pool.get`. */
export class PoolRequest {
  @Text(POOL_NAME) readonly pool!: string;
}

/** `ops.pool.take`: another tool, or a person, wants a node out of service. */
export class TakeRequest extends ReasonedRequest {
  @Text(NODE_NAME) readonly node!: string;
  @Optional() @Text(POOL_NAME) readonly pool?: string;
  @Text(SOME_WORDS) readonly owner!: string;
  /** It is given back by itself after so many milliseconds. */
  @Optional() @Whole(1_000, MAX_DURATION_MS) readonly forMs?: number;
}

/** `ops.pool.give`: it is in service again. */
export class GiveRequest extends AskedRequest {
  @Text(NODE_NAME) readonly node!: string;
  @Text(SOME_WORDS) readonly owner!: string;
}
