import { AnyList, Nested, Optional, StrategySpec, Text } from '#libs/manifests';
import { AskedRequest, CHANGE_ID, HASH, NODE_NAME, PageRequest, WORDS } from './forms.js';

/** `ops.config.plan`: what a change would do. The manifests in it are checked as those of a published change. */
export class PlanRequest extends PageRequest {
  @Optional() @AnyList() readonly apply?: readonly unknown[];
  @Optional() @AnyList() readonly delete?: readonly unknown[];
  @Optional() @Nested(() => StrategySpec) readonly strategy?: StrategySpec;
  @Optional() @Text(WORDS) readonly message?: string;
  @Optional() @Text(WORDS) readonly author?: string;
}

/** `ops.config.diff`: two configs of a node, those in force and committed unless hashes are given. */
export class DiffRequest {
  @Text(NODE_NAME) readonly node!: string;
  @Optional() @Text(HASH) readonly from?: string;
  @Optional() @Text(HASH) readonly to?: string;
}

/** `ops.config.retry`: publishes a change once more. */
export class RetryRequest extends AskedRequest {
  @Text(CHANGE_ID) readonly change!: string;
}
