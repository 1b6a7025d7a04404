import { StrategySpec } from '../change.js';
import { MAX_DURATION_MS } from '../duration.js';
import { Nested, Optional, type Class } from '../shape/checked.js';
import { Fields } from '../shape/description.js';
import { AnyList, Flag, LABEL_KEY_FORM, LabelMap, Text, TextList, Whole } from '../shape/forms.js';
import {
  AskedRequest,
  CHANGE_ID,
  HASH,
  HASH_OR_PREFIX,
  NODE_NAME,
  PageRequest,
  POOL_NAME,
  ReasonedRequest,
  SOME_WORDS,
  SOURCE_NAME,
  WORDS,
} from './forms.js';

/** `ops.config.plan`: what a change would do. The manifests in it are checked as those of a published change. */
@Fields({
  apply: 'Manifests to apply, as in a published change.',
  delete: 'Fragments to delete, each with `kind` and `name`.',
  strategy: 'Limits of the rollout.',
  message: 'What the change is for, in the words of its author.',
  author: 'Who would publish the change.',
  takeOver: 'The change may touch fragments that belong to other sources.',
  source:
    'The source that would publish the change. Without it, the plan does not check which source owns each fragment.',
})
export class PlanRequest extends PageRequest {
  @Optional() @AnyList() readonly apply?: readonly unknown[];
  @Optional() @AnyList() readonly delete?: readonly unknown[];
  @Optional() @Nested(() => StrategySpec) readonly strategy?: StrategySpec;
  @Optional() @Text(WORDS) readonly message?: string;
  @Optional() @Text(WORDS) readonly author?: string;
  @Optional() @Flag() readonly takeOver?: boolean;
  @Optional() @Text(SOURCE_NAME) readonly source?: string;
}

/** `ops.config.diff`: two configs of a node, those in force and committed unless hashes are given. */
@Fields({
  node: 'Name of the node.',
  from: 'Hash of the config to compare. Default: the one that the node has.',
  to: 'Hash of the config to compare with. Default: the one that is committed for the node.',
})
export class DiffRequest {
  @Text(NODE_NAME) readonly node!: string;
  @Optional() @Text(HASH) readonly from?: string;
  @Optional() @Text(HASH) readonly to?: string;
}

/** `ops.config.retry`: publishes a change once more. */
@Fields({ change: 'Id of the change to publish again, such as `c12`.' })
export class RetryRequest extends AskedRequest {
  @Text(CHANGE_ID) readonly change!: string;
}

/** `ops.config.rollback`: publishes the state before a change. */
@Fields({ change: 'Id of the change to roll back, such as `c12`.' })
export class RollbackRequest extends AskedRequest {
  @Text(CHANGE_ID) readonly change!: string;
}

/** `ops.rollout.get`: one rollout and a page of its nodes. */
@Fields({ change: 'Id of the change, such as `c12`.' })
export class GetRolloutRequest extends PageRequest {
  @Text(CHANGE_ID) readonly change!: string;
}

/** `ops.rollout.pause`, `resume` and `abort`. */
@Fields({ change: 'Id of the change, such as `c12`.' })
export class SteerRequest extends ReasonedRequest {
  @Text(CHANGE_ID) readonly change!: string;
}

/** `ops.node.get` and `ops.node.why`. */
@Fields({ node: 'Name of the node.' })
export class NodeRequest {
  @Text(NODE_NAME) readonly node!: string;
}

/** `ops.node.skip`. */
@Fields({ node: 'Name of the node.' })
export class SettleNodeRequest extends ReasonedRequest {
  @Text(NODE_NAME) readonly node!: string;
}

/** `ops.node.remove`. */
@Fields({ force: 'Removes the node although it still reports.' })
export class RemoveNodeRequest extends SettleNodeRequest {
  @Optional() @Flag() readonly force: boolean = false;
}

/** `ops.node.label`: labels that a person sets on a node, or removes again. */
@Fields({
  node: 'Name of the node.',
  set: 'Labels to set, at most 64 in all. They take precedence over those of the node itself and of Kubernetes.',
  remove: 'Keys of labels to remove that were set in this way.',
})
export class LabelNodeRequest extends AskedRequest {
  @Text(NODE_NAME) readonly node!: string;
  @Optional() @LabelMap() readonly set: Readonly<Record<string, string>> = {};
  @Optional() @TextList(LABEL_KEY_FORM) readonly remove: readonly string[] = [];
}

/** `ops.node.drained`: an external drainer's answer. */
@Fields({
  node: 'Name of the node that was drained.',
  lease: 'Id of the lease for which it was drained.',
  evicted: 'How many pods were evicted.',
})
export class DrainedRequest extends AskedRequest {
  @Text(NODE_NAME) readonly node!: string;
  @Optional() @Text(WORDS) readonly lease: string = '';
  @Optional() @Whole(0, 1_000_000) readonly evicted: number = 0;
}

/** `ops.pool.get`. */
@Fields({ pool: 'Name of the pool.' })
export class PoolRequest {
  @Text(POOL_NAME) readonly pool!: string;
}

/** `ops.pool.take`: another tool, or a person, wants a node out of service. */
@Fields({
  node: 'Name of the node to take out of service.',
  pool: 'Pool whose budget it counts against. Default: the pool of the node.',
  owner: 'Who takes it. The same owner must give it back.',
  forMs: 'After this many milliseconds the node is given back automatically. Default: never.',
})
export class TakeRequest extends ReasonedRequest {
  @Text(NODE_NAME) readonly node!: string;
  @Optional() @Text(POOL_NAME) readonly pool?: string;
  @Text(SOME_WORDS) readonly owner!: string;
  /** It is given back by itself after so many milliseconds. */
  @Optional() @Whole(1_000, MAX_DURATION_MS) readonly forMs?: number;
}

/** `ops.pool.give`: it is in service again. */
@Fields({ node: 'Name of the node to put back into service.', owner: 'Who took it.' })
export class GiveRequest extends AskedRequest {
  @Text(NODE_NAME) readonly node!: string;
  @Text(SOME_WORDS) readonly owner!: string;
}

/** `ops.known-bad.clear`: the reason is recorded, and must be given. */
@Fields({
  hash: 'Hash of the known-bad config, or at least its first 7 digits.',
  reason: 'Why it may be tried again. Recorded with the decision.',
  findings: 'Refuse unless these are all of its findings: it may have been found to be bad again. Default: clear it.',
})
export class ClearRequest extends AskedRequest {
  @Text(HASH_OR_PREFIX) readonly hash!: string;
  @Text(SOME_WORDS) readonly reason!: string;
  @Optional() @TextList(SOME_WORDS) readonly findings?: readonly string[];
}

/** `ops.known-bad.add`: another fleet found a config to be bad. */
@Fields({
  hash: 'Hash of the config.',
  recipe: 'Digest of the fragments that it was rendered from, so that configs of the same fragments are refused, too.',
  fleet: 'The other fleet.',
  node: 'The node there that reported it as invalid.',
  change: 'The change there that contained it.',
  reason: 'The reason in the report.',
  finding:
    'Tells it from other findings of that fleet: the lease there. A finding that was cleared here is not added again. Default: the change.',
})
export class AddKnownBadRequest extends AskedRequest {
  @Text(HASH) readonly hash!: string;
  @Optional() @Text(HASH) readonly recipe?: string;
  @Text(NODE_NAME) readonly fleet!: string;
  @Text(NODE_NAME) readonly node!: string;
  @Text(CHANGE_ID) readonly change!: string;
  @Text(SOME_WORDS) readonly reason!: string;
  @Optional() @Text(SOME_WORDS) readonly finding?: string;
}

/** The class of every request under `ops.`, by subject. */
export const REQUESTS = {
  'ops.config.plan': PlanRequest,
  'ops.config.diff': DiffRequest,
  'ops.config.retry': RetryRequest,
  'ops.config.rollback': RollbackRequest,
  'ops.rollout.list': PageRequest,
  'ops.rollout.get': GetRolloutRequest,
  'ops.rollout.pause': SteerRequest,
  'ops.rollout.resume': SteerRequest,
  'ops.rollout.abort': SteerRequest,
  'ops.node.list': PageRequest,
  'ops.node.get': NodeRequest,
  'ops.node.why': NodeRequest,
  'ops.node.skip': SettleNodeRequest,
  'ops.node.remove': RemoveNodeRequest,
  'ops.node.label': LabelNodeRequest,
  'ops.node.drained': DrainedRequest,
  'ops.known-bad.list': PageRequest,
  'ops.known-bad.add': AddKnownBadRequest,
  'ops.known-bad.clear': ClearRequest,
  'ops.pool.list': PageRequest,
  'ops.pool.get': PoolRequest,
  'ops.pool.take': TakeRequest,
  'ops.pool.give': GiveRequest,
} as const satisfies Readonly<Record<string, Class>>;

export type RequestSubject = keyof typeof REQUESTS;

/** The requests that a core answers, by a table of their subjects; `op` is the name in the table. */
export type RequestOf<Table extends Readonly<Record<string, RequestSubject>>> = {
  readonly [Op in keyof Table]: { readonly op: Op } & InstanceType<(typeof REQUESTS)[Table[Op]]>;
}[keyof Table];
