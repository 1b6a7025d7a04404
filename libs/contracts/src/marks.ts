/** The marks on a Node of Kubernetes by which services, and people, know what Sluice did there. */
export const CORDON_MARK = 'sluice.dev/cordon';
/** The last lease that gave the Node back. Written always, so that a slow copy of an earlier look loses. */
export const RELEASED_MARK = 'sluice.dev/uncordoned-for';
/** A person's word: who puts this on a Node wants it to stay cordoned, whoever cordoned it. */
export const KEEP_MARK = 'sluice.dev/keep-cordoned';

/** What stands in CORDON_MARK. */
export interface CordonMark {
  readonly lease: string;
  /** It was cordoned before Sluice came, and is somebody else's to uncordon. */
  readonly found: boolean;
}

/** The mark on a Node; one that cannot be read was written by somebody else, and says nothing. */
export function cordonMarkOf(annotations: Readonly<Record<string, string>>): CordonMark | undefined {
  try {
    const mark = JSON.parse(annotations[CORDON_MARK] ?? '') as Partial<CordonMark> | null;
    return typeof mark?.lease === 'string' ? { lease: mark.lease, found: mark.found === true } : undefined;
  } catch {
    return undefined;
  }
}
