import { fragmentId, reasonFor, type Fragment, type Reason } from '#libs/contracts';
import { isOfFunction, PURPOSE_LABELS, selectedPurposes } from './purposes.js';

/**
 * Why a fragment must not replace the existing one with that name: it would be for something else. Other tools select
 * and count by the labels, and rights depend on all of it, so it can be neither changed, added nor removed.
 */
export function immutableReasons(
  before: Pick<Fragment, 'kind' | 'labels'> & { readonly spec?: unknown },
  now: Pick<Fragment, 'kind' | 'name' | 'labels'> & { readonly spec?: unknown },
): readonly Reason[] {
  const reasons = PURPOSE_LABELS.flatMap((label) => {
    const [old, purpose] = [before.labels[label], now.labels[label]];
    if (old === purpose) return [];
    const is = old === undefined ? 'is not set' : `is ${JSON.stringify(old)}`;
    const tries =
      purpose === undefined
        ? 'cannot be removed'
        : old === undefined
          ? `cannot become ${JSON.stringify(purpose)}`
          : `cannot change to ${JSON.stringify(purpose)}`;
    return [refusal(now, `metadata.labels["${label}"]`, `${is} and ${tries}`)];
  });
  // Objects of network functions are for what they select.
  if (!isOfFunction(now.kind)) return reasons;
  const [old, selected] = [selectedPurposes(before), selectedPurposes(now)].map(wordsOf);
  if (old === selected) return reasons;
  return [...reasons, refusal(now, 'spec.nodeSelector', `selects ${old}, and cannot change to ${selected}`)];
}

const wordsOf = (purposes: readonly string[] | undefined): string =>
  purposes === undefined ? 'nodes with any purpose' : `nodes with the purpose ${purposes.join(' or ')}`;

function refusal(now: Pick<Fragment, 'kind' | 'name'>, field: string, problem: string): Reason {
  const fragment = fragmentId(now);
  return reasonFor({ fragment, field }, 'immutable', `${problem}: delete ${fragment} and create it again`);
}
