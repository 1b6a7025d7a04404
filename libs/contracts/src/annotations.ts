/** The marks on a Node of Kubernetes by which services, and people, know what Sluice did there. */
export const CORDON_ANNOTATION = 'sluice.dev/cordon';
/** The last lease that gave the Node back. Written always, so that a slow copy of an earlier look loses. */
export const UNCORDONED_ANNOTATION = 'sluice.dev/uncordoned-for';
/** A person's word: who puts this on a Node wants it to stay cordoned, no matter who cordoned it. */
export const KEEP_CORDONED_ANNOTATION = 'sluice.dev/keep-cordoned';

/** What stands in CORDON_ANNOTATION. */
export interface CordonAnnotation {
  readonly lease: string;
  /** It was cordoned before Sluice came, and is somebody else's to uncordon. */
  readonly alreadyCordoned: boolean;
}

/** The mark on a Node; one that cannot be read was written by somebody else, and says nothing. */
export function cordonAnnotationOf(annotations: Readonly<Record<string, string>>): CordonAnnotation | undefined {
  try {
    const mark = JSON.parse(annotations[CORDON_ANNOTATION] ?? '') as Partial<CordonAnnotation> | null;
    return typeof mark?.lease === 'string'
      ? { lease: mark.lease, alreadyCordoned: mark.alreadyCordoned === true }
      : undefined;
  } catch {
    return undefined;
  }
}
