import type { Reason } from '#libs/contracts';
import { immutableReasons } from '#libs/manifests';
import { isSame, wordsOf } from '../conditions.js';
import { previewReview } from './review-preview.js';
import { checkObject, fragmentOfObject } from '../resource.js';
import type { AdmissionRequest, WrittenObject } from './request.js';
import { ALLOWED, type AdmissionAnswer } from './response.js';
import { purposeRights, withoutRight, type PurposeRight } from './purpose-rights.js';
import { forbiddenBy } from './rights.js';
import type { DesiredState } from './desired-state.js';

/** An API server cuts a warning off after 256 characters, and accepts 4,096 for all of them. */
const [MOST_WARNINGS, MOST_CHARACTERS] = [12, 256];

/*
 * Invariants:
 * 1. A request that changes no content, or whose object is being deleted, is always allowed, so that nobody can be
 *    stopped from releasing an object.
 * 2. Only errors that no other object could correct are refused: form, immutable fields, missing rights.
 * 3. An error that depends on other objects is a warning: objects arrive one by one, in any order, and the review
 *    checks all of them.
 * 4. A user without a right is refused, no matter what else the object contains.
 */
export function answerAdmission(
  request: AdmissionRequest,
  desired: DesiredState,
  { notes = [], lacks }: AnswerOptions = {},
): AdmissionAnswer {
  const { object, before } = request;
  if (changesNothing(request)) return ALLOWED;
  if (lacks !== undefined) return { is: 'forbidden', message: withoutRight(request, lacks) };
  const checked = object === undefined ? undefined : checkObject(object);
  const id = `${request.kind}/${request.name}`;
  // A fragment without an object may have been committed from another source.
  const old = before ?? desired.get(id);
  const reasons = [
    ...(checked !== undefined && 'reasons' in checked ? checked.reasons : []),
    ...(object !== undefined && old !== undefined ? immutableReasons(old, object) : []),
  ];
  if (reasons.length > 0) return { is: 'invalid', message: wordsOf(reasons, id), reasons };
  if (!desired.isReady) return { is: 'unready' };
  const now = checked !== undefined && 'fragment' in checked ? checked.fragment : undefined;
  const message = forbiddenBy(
    request,
    { before: before === undefined ? desired.get(id) : fragmentOfObject(before), now },
    desired,
  );
  if (message !== undefined) return { is: 'forbidden', message };
  return {
    is: 'allowed',
    warnings: warningsOf([...previewReview(id, now, desired).map((reason) => lineOf(reason, id)), ...notes]),
  };
}

export interface AnswerOptions {
  /** More warnings. */
  readonly notes?: readonly string[];
  /** One of the rights that `rightsNeeded` names, if the user does not have it. */
  readonly lacks?: PurposeRight | undefined;
}

/** The rights that the API server has to decide before a request can be answered. */
export function rightsNeeded(request: AdmissionRequest, desired: DesiredState): readonly PurposeRight[] {
  const { kind, name, object, before } = request;
  if (changesNothing(request)) return [];
  // A fragment without an object may have been committed from another source.
  return purposeRights(kind, { before: before ?? desired.get(`${kind}/${name}`), now: object });
}

const changesNothing = ({ object, before }: AdmissionRequest): boolean =>
  object?.deleting === true || (object !== undefined && before !== undefined && isSameContent(object, before));

const isSameContent = (one: WrittenObject, other: WrittenObject): boolean =>
  isSame([one.spec, one.labels], [other.spec, other.labels]);

function lineOf({ fragment, field, message, nodes }: Reason, id: string): string {
  const place = [fragment === id ? '' : fragment, message.startsWith(field) ? '' : field]
    .filter((part) => part !== '')
    .join(' ');
  return `${place === '' ? '' : `${place}: `}${message}${nodes.length === 0 ? '' : ` (${[...nodes].sort().slice(0, 3).join(', ')}${nodes.length > 3 ? ', …' : ''})`}`;
}

function warningsOf(lines: readonly string[]): readonly string[] {
  const shown = lines
    .slice(0, MOST_WARNINGS)
    .map((line) => (line.length <= MOST_CHARACTERS ? line : `${line.slice(0, MOST_CHARACTERS - 1)}…`));
  return lines.length > MOST_WARNINGS ? [...shown, `and ${lines.length - MOST_WARNINGS} more`] : shown;
}
