import type { Fragment } from '#libs/contracts';
import { compositeKindOf } from './kinds/functions/composite-kinds.js';
import { functionKindOf } from './kinds/functions/table.js';
import { selectorOf, type NodeSelector } from './selector.js';
import { isObject } from './shape/reader.js';

/**
 * The labels that say what an object is for. The second is that of the SD-EWAN controller, and the pods of its network
 * functions have it, too.
 */
export const PURPOSE_LABELS = ['sluice.dev/purpose', 'sdewanPurpose'] as const;

/** What a fragment is for. */
export interface Purposes {
  /** In order. */
  readonly names: readonly string[];
  /** Its node selector also matches nodes with other purposes. */
  readonly isForAny: boolean;
}

/** Also an object whose form was not checked yet. */
export type Purposed = Pick<Fragment, 'kind' | 'labels'> & { readonly spec?: unknown };

/**
 * What a fragment is for, according to its labels, and to what its node selector requires of the purpose of a node. A
 * fragment of another kind than those of network functions that mentions no purpose is for none.
 */
export function purposesOf(fragment: Purposed): Purposes {
  const selected = selectedPurposes(fragment);
  const labels = PURPOSE_LABELS.flatMap((label) => fragment.labels[label] ?? []);
  const isForAny = selected === undefined && (isOfFunction(fragment.kind) || mentions(fragment));
  return { names: [...new Set([...labels, ...(selected ?? [])])].sort(), isForAny };
}

/** The purposes that a node may have that is selected; undefined if it may have any. */
export function selectedPurposes(fragment: Purposed): readonly string[] | undefined {
  const { matchLabels = {}, matchExpressions = [] } = selectorIn(fragment);
  const required = PURPOSE_LABELS.flatMap((label) => [
    ...(matchLabels[label] === undefined ? [] : [[matchLabels[label]]]),
    ...matchExpressions
      .filter(({ key, operator }) => key === label && operator === 'In')
      .map(({ values = [] }) => values),
  ]);
  return required.length === 0 ? undefined : [...new Set(required.flat())].sort();
}

/** For example with `Exists`. */
const mentions = (fragment: Purposed): boolean =>
  (selectorIn(fragment).matchExpressions ?? []).some(({ key }) => PURPOSE_LABELS.some((label) => label === key));

function selectorIn({ spec }: Purposed): NodeSelector {
  const { matchLabels, matchExpressions }: NodeSelector = isObject(spec) ? selectorOf({ spec }) : {};
  return {
    matchLabels: isObject(matchLabels) ? matchLabels : {},
    matchExpressions: Array.isArray(matchExpressions) ? matchExpressions : [],
  };
}

/** Whether objects of this kind are configured on network functions. */
export const isOfFunction = (kind: string): boolean =>
  functionKindOf(kind) !== undefined || compositeKindOf(kind) !== undefined;
