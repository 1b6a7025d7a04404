import { Optional, Text, Whole } from '#libs/manifests';
import { AskedRequest, NODE_NAME, PageRequest, ReasonedRequest, WORDS } from './forms.js';

/** `ops.node.list`. */
export class ListNodesRequest extends PageRequest {}

/** `ops.node.get` and `ops.node.why`. */
export class NodeRequest {
  @Text(NODE_NAME) readonly node!: string;
}

/** `ops.node.skip` and `ops.node.remove`. */
export class SettleNodeRequest extends ReasonedRequest {
  @Text(NODE_NAME) readonly node!: string;
}

/** `ops.node.drained`: an external drainer's answer. */
export class DrainedRequest extends AskedRequest {
  @Text(NODE_NAME) readonly node!: string;
  @Optional() @Text(WORDS) readonly lease?: string;
  @Optional() @Whole(0, 1_000_000) readonly evicted?: number;
}
