import {
  CORDON_ANNOTATION,
  cordonAnnotationOf,
  KEEP_CORDONED_ANNOTATION,
  UNCORDONED_ANNOTATION,
  type CordonAnnotation,
} from '#libs/contracts';

// I5: Sluice uncordons only what it cordoned. So each cordon has a mark that names its lease and says whether the node
// was already cordoned. Every write is a compare-and-set on the Node as it was read before the lease was read again.

/** The parts of a Node that matter for its cordon. */
export interface NodeCordon {
  readonly unschedulable: boolean;
  /** Sluice was the last to set `unschedulable`. True if it is unknown who did. */
  readonly setBySluice: boolean;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface NodeWrite {
  readonly unschedulable?: boolean;
  readonly annotations: Readonly<Record<string, string | null>>;
}

/** What to write to cordon the Node for this lease; undefined if it is already cordoned. */
export function cordonWrite(node: NodeCordon, lease: string): NodeWrite | undefined {
  const mark = markOf(node);
  if (!node.unschedulable) return { unschedulable: true, annotations: marked({ lease, alreadyCordoned: false }) };
  if (mark?.lease === lease) return undefined;
  // Keep what the mark of an earlier lease says about the state before. A cordon without a mark is not from Sluice.
  return { annotations: marked({ lease, alreadyCordoned: mark?.alreadyCordoned ?? true }) };
}

/** Whether somebody removed a cordon that has the mark of this lease. */
export const wasTakenOff = (node: NodeCordon, lease: string): boolean =>
  !node.unschedulable && markOf(node)?.lease === lease;

/** What to write to give the Node back after this lease; undefined if that is already done. */
export function uncordonWrite(node: NodeCordon, lease: string): NodeWrite | undefined {
  const mark = markOf(node);
  if (mark?.lease !== lease)
    return node.annotations[UNCORDONED_ANNOTATION] === lease
      ? undefined
      : { annotations: { [UNCORDONED_ANNOTATION]: lease } };
  const isOurs = !mark.alreadyCordoned && node.setBySluice && node.annotations[KEEP_CORDONED_ANNOTATION] === undefined;
  return {
    ...(isOurs && node.unschedulable ? { unschedulable: false } : {}),
    annotations: { [CORDON_ANNOTATION]: null, [UNCORDONED_ANNOTATION]: lease },
  };
}

const marked = (mark: CordonAnnotation): NodeWrite['annotations'] => ({ [CORDON_ANNOTATION]: JSON.stringify(mark) });

const markOf = ({ annotations }: NodeCordon): CordonAnnotation | undefined => cordonAnnotationOf(annotations);
