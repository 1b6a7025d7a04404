/** The annotations on a Kubernetes Node that tell services and people what Sluice did there. */
export const CORDON_ANNOTATION = 'sluice.dev/cordon';
/**
 * The last lease that gave the Node back. It is always written, so that a write of a slow copy that read the Node
 * earlier is refused.
 */
export const UNCORDONED_ANNOTATION = 'sluice.dev/uncordoned-for';
/** A person sets this on a Node to keep it cordoned, no matter who cordoned it. */
export const KEEP_CORDONED_ANNOTATION = 'sluice.dev/keep-cordoned';

/** The content of CORDON_ANNOTATION. */
export interface CordonAnnotation {
  readonly lease: string;
  /** The Node was cordoned before Sluice came, so Sluice does not uncordon it. */
  readonly alreadyCordoned: boolean;
}

/** The mark on a Node; undefined if it cannot be read, because then Sluice did not write it. */
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
