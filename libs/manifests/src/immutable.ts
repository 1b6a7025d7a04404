import { fragmentId, reasonFor, type Fragment, type Reason } from '#libs/contracts';

/**
 * The label that says what a fragment is for. Other tools select and count by it, so it cannot change once it is set.
 */
const PURPOSE_LABEL = 'sluice.dev/purpose';

/** Why a fragment must not replace the existing one with that name: it changes an immutable field. */
export function immutableReasons(
  before: Pick<Fragment, 'labels'>,
  now: Pick<Fragment, 'kind' | 'name' | 'labels'>,
): readonly Reason[] {
  const old = before.labels[PURPOSE_LABEL];
  const purpose = now.labels[PURPOSE_LABEL];
  if (old === undefined || old === purpose) return [];
  const tries = purpose === undefined ? 'cannot be removed' : `cannot change to ${JSON.stringify(purpose)}`;
  const message = `is ${JSON.stringify(old)} and ${tries}: delete ${fragmentId(now)} and create it again`;
  const place = { fragment: fragmentId(now), field: `metadata.labels["${PURPOSE_LABEL}"]` };
  return [reasonFor(place, 'immutable', message)];
}
