import { fragmentId, type Fragment, type Reason } from '#libs/contracts';

/**
 * The label that says what a fragment is for. Others select and count by it, so that once given it stays what it is.
 */
export const PURPOSE_LABEL = 'sluice.dev/purpose';

/** What a fragment may not change of the one that is there under its name. */
export function immutableReasons(
  before: Pick<Fragment, 'labels'>,
  now: Pick<Fragment, 'kind' | 'name' | 'labels'>,
): readonly Reason[] {
  const old = before.labels[PURPOSE_LABEL];
  const wanted = now.labels[PURPOSE_LABEL];
  if (old === undefined || old === wanted) return [];
  const tries = wanted === undefined ? 'and cannot be taken away' : `and cannot become ${JSON.stringify(wanted)}`;
  const message = `was given as ${JSON.stringify(old)}, ${tries}: delete ${fragmentId(now)}, and create it again`;
  return [
    { fragment: fragmentId(now), field: `metadata.labels["${PURPOSE_LABEL}"]`, code: 'immutable', message, nodes: [] },
  ];
}
