import {
  CORDON_ANNOTATION,
  cordonAnnotationOf,
  KEEP_CORDONED_ANNOTATION,
  UNCORDONED_ANNOTATION,
  type CordonAnnotation,
} from '#libs/contracts';

// A cordon names its lease and says whether it was found: I5, only what Sluice cordoned is uncordoned by it. All writes
// are compare-and-set on the Node as it was read before the lease was read again.

/** A Node, as far as its cordon is concerned. */
export interface NodeSeen {
  readonly unschedulable: boolean;
  /** Sluice was the last to set `unschedulable`; where nobody says who did, this is true. */
  readonly setBySluice: boolean;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface NodeWrite {
  readonly unschedulable?: boolean;
  readonly annotations: Readonly<Record<string, string | null>>;
}

/** What has to be written for the Node to be cordoned for this lease; undefined when it is. */
export function cordonWrite(node: NodeSeen, lease: string): NodeWrite | undefined {
  const mark = markOf(node);
  if (!node.unschedulable) return { unschedulable: true, annotations: marked({ lease, alreadyCordoned: false }) };
  if (mark?.lease === lease) return undefined;
  // The mark of an earlier lease is taken over with what it says; a cordon without a mark is somebody else's.
  return { annotations: marked({ lease, alreadyCordoned: mark?.alreadyCordoned ?? true }) };
}

/** Whether somebody took off a cordon that bore this lease's mark. */
export const wasTakenOff = (node: NodeSeen, lease: string): boolean =>
  !node.unschedulable && markOf(node)?.lease === lease;

/** What has to be written for the Node to be given back by this lease; undefined when it was. */
export function uncordonWrite(node: NodeSeen, lease: string): NodeWrite | undefined {
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

const markOf = ({ annotations }: NodeSeen): CordonAnnotation | undefined => cordonAnnotationOf(annotations);
