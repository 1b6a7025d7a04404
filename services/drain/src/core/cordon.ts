/**
 * The marks on a Node by which Sluice knows what it did. A cordon names its lease and says whether it was found: I5, only
 * what Sluice cordoned is uncordoned by it. All writes are compare-and-set on the Node as it was read before the lease was read again.
 */
export const CORDON = 'sluice.dev/cordon';
/** The last lease that gave the Node back. Written always, so that a slow copy of an earlier look loses. */
export const RELEASED = 'sluice.dev/uncordoned-for';
/** A person's word: who puts this on a Node wants it to stay cordoned, whoever cordoned it. */
export const KEEP = 'sluice.dev/keep-cordoned';

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

interface Mark {
  readonly lease: string;
  /** It was cordoned before Sluice came, and is somebody else's to uncordon. */
  readonly found: boolean;
}

/** What has to be written for the Node to be cordoned for this lease; undefined when it is. */
export function cordonWrite(node: NodeSeen, lease: string): NodeWrite | undefined {
  const mark = markOf(node);
  if (!node.unschedulable) return { unschedulable: true, annotations: marked({ lease, found: false }) };
  if (mark?.lease === lease) return undefined;
  // The mark of an earlier lease is taken over with what it says; a cordon without a mark is somebody else's.
  return { annotations: marked({ lease, found: mark?.found ?? true }) };
}

/** Whether somebody took off a cordon that bore this lease's mark. */
export const wasTakenOff = (node: NodeSeen, lease: string): boolean => !node.unschedulable && markOf(node)?.lease === lease;

/** What has to be written for the Node to be given back by this lease; undefined when it was. */
export function uncordonWrite(node: NodeSeen, lease: string): NodeWrite | undefined {
  const mark = markOf(node);
  if (mark?.lease !== lease) return node.annotations[RELEASED] === lease ? undefined : { annotations: { [RELEASED]: lease } };
  const isOurs = !mark.found && node.setBySluice && node.annotations[KEEP] === undefined;
  return { ...(isOurs && node.unschedulable ? { unschedulable: false } : {}), annotations: { [CORDON]: null, [RELEASED]: lease } };
}

const marked = (mark: Mark): NodeWrite['annotations'] => ({ [CORDON]: JSON.stringify(mark) });

/** A mark that cannot be read was written by somebody else, and says nothing. */
function markOf({ annotations }: NodeSeen): Mark | undefined {
  try {
    const mark = JSON.parse(annotations[CORDON] ?? '') as Partial<Mark> | null;
    return typeof mark?.lease === 'string' ? { lease: mark.lease, found: mark.found === true } : undefined;
  } catch {
    return undefined;
  }
}
