import type { Reason } from '#libs/contracts';
import { immutableReasons } from '#libs/manifests';
import { isSame, wordsOf } from '../conditions.js';
import { previewReview } from './review-preview.js';
import { checkObject, fragmentOfObject } from '../resource.js';
import type { AdmissionRequest, WrittenObject } from './request.js';
import { ALLOWED, type AdmissionAnswer } from './response.js';
import { forbiddenBy } from './rights.js';
import type { DesiredState } from './desired-state.js';

/** An API server cuts a warning off behind 256 characters, and takes 4,096 of all. */
const [MOST_WARNINGS, MOST_CHARACTERS] = [12, 256];

/*
 * What always holds:
 * 1. What changes no content, and what is being deleted, is allowed to anybody: nobody can be kept from releasing an
 *    object.
 * 2. Only what no other object could correct is refused: its form, what is immutable, missing rights.
 * 3. What is wrong only together with other objects is a warning: they arrive one by one, in any order, and the review
 *    looks at all of them.
 */
export function answerAdmission(
  request: AdmissionRequest,
  wanted: DesiredState,
  notes: readonly string[] = [],
): AdmissionAnswer {
  const { object, before } = request;
  if (object?.deleting === true || (object !== undefined && before !== undefined && isSameContent(object, before)))
    return ALLOWED;
  const checked = object === undefined ? undefined : checkObject(object);
  const id = `${request.kind}/${request.name}`;
  // What has no object yet may be committed, on another way.
  const old = before ?? wanted.get(id);
  const reasons = [
    ...(checked !== undefined && 'reasons' in checked ? checked.reasons : []),
    ...(object !== undefined && old !== undefined ? immutableReasons(old, object) : []),
  ];
  if (reasons.length > 0) return { is: 'invalid', message: wordsOf(reasons, id), reasons };
  if (!wanted.isReady) return { is: 'unready' };
  const now = checked !== undefined && 'fragment' in checked ? checked.fragment : undefined;
  const message = forbiddenBy(
    request,
    { before: before === undefined ? wanted.get(id) : fragmentOfObject(before), now },
    wanted,
  );
  if (message !== undefined) return { is: 'forbidden', message };
  return {
    is: 'allowed',
    warnings: warningsOf([...previewReview(id, now, wanted).map((reason) => lineOf(reason, id)), ...notes]),
  };
}

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
