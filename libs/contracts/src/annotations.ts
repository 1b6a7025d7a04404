/** The annotations on Kubernetes objects that tell services and people what Sluice did there. */
export const CORDON_ANNOTATION = 'sluice.dev/cordon';
/**
 * The last lease that gave the Node back. It is always written, so that a write of a slow copy that read the Node
 * earlier is refused.
 */
export const UNCORDONED_ANNOTATION = 'sluice.dev/uncordoned-for';
/** A person sets this on a Node to keep it cordoned, no matter who cordoned it. */
export const KEEP_CORDONED_ANNOTATION = 'sluice.dev/keep-cordoned';

/** On an object that Sluice paused while nodes are drained: who needs it paused. */
export const PAUSE_ANNOTATION = 'sluice.dev/pause';
/** The last lease that needed the object paused and ended; it is written for the same reason. */
export const UNPAUSED_ANNOTATION = 'sluice.dev/unpaused-for';
/** A person sets this on an object to keep it paused, no matter who paused it. */
export const KEEP_PAUSED_ANNOTATION = 'sluice.dev/keep-paused';

/** The content of PAUSE_ANNOTATION: the lease of one of the drains that need the object paused, and its pool. */
export interface PauseAnnotation {
  readonly lease: string;
  readonly pool: string;
}

/** The content of CORDON_ANNOTATION. */
export interface CordonAnnotation {
  readonly lease: string;
  /** The Node was cordoned before Sluice came, so Sluice does not uncordon it. */
  readonly alreadyCordoned: boolean;
}

/** The mark on a Node; undefined if it cannot be read, because then Sluice did not write it. */
export function cordonAnnotationOf(annotations: Annotations): CordonAnnotation | undefined {
  const mark = markOf<CordonAnnotation>(annotations[CORDON_ANNOTATION]);
  return typeof mark?.lease === 'string'
    ? { lease: mark.lease, alreadyCordoned: mark.alreadyCordoned === true }
    : undefined;
}

/** The mark on a paused object; undefined if it cannot be read, because then Sluice did not write it. */
export function pauseAnnotationOf(annotations: Annotations): PauseAnnotation | undefined {
  const mark = markOf<PauseAnnotation>(annotations[PAUSE_ANNOTATION]);
  return typeof mark?.lease === 'string' ? { lease: mark.lease, pool: String(mark.pool ?? '') } : undefined;
}

type Annotations = Readonly<Record<string, string>>;

function markOf<T>(text = ''): Partial<T> | null {
  try {
    return JSON.parse(text) as Partial<T> | null;
  } catch {
    return null;
  }
}
