import { API_GROUP, pluralOf, purposesOf, type Purposed } from '#libs/manifests';
import type { AdmissionRequest } from './request.js';

/**
 * A right that the API server decides: to `use` the subresource `purpose` of a kind, with the purpose as the name.
 * Empty: with any purpose.
 */
export interface PurposeRight {
  readonly plural: string;
  readonly purpose: string;
}

/** The rights that a change of an object needs, because of what the object is for, before or after it. */
export function purposeRights(
  kind: string,
  { before, now }: { readonly before: Purposed | undefined; readonly now: Purposed | undefined },
): readonly PurposeRight[] {
  const all = [before, now].filter((fragment) => fragment !== undefined).map(purposesOf);
  const plural = pluralOf(kind);
  const names = new Set(all.flatMap(({ names: some }) => some));
  return [
    ...[...names].sort().map((purpose) => ({ plural, purpose })),
    ...(all.some(({ isForAny }) => isForAny) ? [{ plural, purpose: '' }] : []),
  ];
}

const VERBS = { CREATE: 'create', UPDATE: 'update', DELETE: 'delete' } as const;

/** Why the user must not do it, without this right. */
export function withoutRight(
  { user, operation, kind, name }: AdmissionRequest,
  { plural, purpose }: PurposeRight,
): string {
  const resource = `${plural}.${API_GROUP}/purpose`;
  const why =
    purpose === ''
      ? `it is for nodes with any purpose, which needs the right to use ${resource} without resourceNames. Or let its node selector require a purpose`
      : `it is for the purpose ${JSON.stringify(purpose)}, which needs the right to use ${resource} with the resourceName ${purpose}`;
  return `${JSON.stringify(user)} may not ${VERBS[operation]} ${kind}/${name}: ${why}`;
}
