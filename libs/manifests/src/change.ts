import { Fields } from './shape/description.js';
import { fragmentId, reasonFor, type Fragment, type FragmentRef, type Reason, type Strategy } from '#libs/contracts';
import { Nested, Optional, type Problem } from './shape/checked.js';
import { AnyList, Flag, patternForm, Text, Whole } from './shape/forms.js';
import { FRAGMENT_NAME } from './fragment-name.js';
import { isObject, readShape, typeName } from './shape/reader.js';
import { jsonProblems, MAX_CHANGE_BYTES, utf8Bytes } from './json-form.js';
import { parseJson } from './json-text.js';
import { checkManifest, reasonsOf } from './manifest.js';
import { MAX_NODES } from './kinds/pool.js';

/** A change as it was meant: the unit of rollout. */
export interface Change {
  readonly apply: readonly Fragment[];
  readonly delete: readonly FragmentRef[];
  readonly message: string;
  readonly author: string;
  readonly strategy: Strategy;
  /** The change that this one repeats; empty for none. */
  readonly retryOf: string;
}

/** A change, or every reason why it cannot be understood or used. */
export type ChangeResult =
  | { readonly ok: true; readonly change: Change }
  | { readonly ok: false; readonly reasons: readonly Reason[] };

/** How a change is to be rolled out, where it wants something other than the policies say. */
@Fields({
  maxFailures: 'How many nodes may fail before the change is rolled back. Overrides every RolloutPolicy.',
  strict: 'Rejects the change if the plan or the review has a warning.',
})
export class StrategySpec {
  @Optional() @Whole(0, MAX_NODES) readonly maxFailures?: number;
  @Optional() @Flag() readonly strict?: boolean;
}

const KIND_NAME = /^[A-Z][A-Za-z0-9]{0,62}$/;
const CHANGE_ID_OR_NONE = patternForm(
  'bad-change',
  /^(c[1-9][0-9]{0,15})?$/,
  'must be the id of a change, such as c12',
);

/** What names a fragment to delete. Its kind may be one that this version no longer knows. */
export class FragmentRefSpec {
  @Text(patternForm('bad-kind', KIND_NAME, 'must be the name of a kind')) readonly kind!: string;
  @Text(FRAGMENT_NAME) readonly name!: string;
}

/** The body of a message in CHANGES. */
export class ChangeBody {
  @Optional() @AnyList() readonly apply?: readonly unknown[];
  @Optional() @AnyList() readonly delete?: readonly unknown[];
  @Optional() @Text() readonly message?: string;
  @Optional() @Text() readonly author?: string;
  @Optional() @Nested(() => StrategySpec) readonly strategy?: StrategySpec;
  @Optional() @Text(CHANGE_ID_OR_NONE) readonly retryOf?: string;
}

/** Reads the body of a message in CHANGES: a change, or one bare manifest. */
export function readChange(text: string): ChangeResult {
  const bytes = utf8Bytes(text);
  if (bytes > MAX_CHANGE_BYTES) {
    return refused([
      {
        at: '',
        code: 'too-large',
        message: `the change has ${bytes} bytes; the limit is ${MAX_CHANGE_BYTES}: split it`,
      },
    ]);
  }
  const json = parseJson(text);
  if (json.ok) return readChangeBody(json.value);
  return refused([
    { at: '', code: 'not-json', message: `the body is not JSON: line ${json.line}, column ${json.column}` },
  ]);
}

/** The same for a body that is parsed already. */
export function readChangeBody(body: unknown): ChangeResult {
  const form = jsonProblems(body);
  if (form.length > 0) return refused(form);
  if (!isObject(body))
    return refused([
      { at: '', code: 'wrong-type', message: `the body must be a change or a manifest, but is ${typeName(body)}` },
    ]);
  const isBare = Object.hasOwn(body, 'kind') || Object.hasOwn(body, 'apiVersion');
  return isBare ? bareManifest(body) : fullChange(body);
}

const refused = (problems: readonly Problem[]): ChangeResult => ({ ok: false, reasons: reasonsOf('', problems) });

function bareManifest(body: unknown): ChangeResult {
  const checked = checkManifest(body, 'manifest');
  if (!checked.ok) return checked;
  return {
    ok: true,
    change: { apply: [checked.fragment], delete: [], message: '', author: '', strategy: {}, retryOf: '' },
  };
}

function fullChange(body: Readonly<Record<string, unknown>>): ChangeResult {
  const shape = readShape(ChangeBody, body);
  const reasons: Reason[] = [...reasonsOf('', shape.problems)];
  const apply = listOf(body['apply']).map((document, i) => checkManifest(document, `apply[${i}]`));
  for (const checked of apply) if (!checked.ok) reasons.push(...checked.reasons);
  const remove = listOf(body['delete']).map((item) => readShape(FragmentRefSpec, item));
  remove.forEach(({ problems }, i) => reasons.push(...reasonsOf(`delete[${i}]`, problems)));
  // Names are compared among what is well-formed: of the rest there is a reason already.
  const named = [
    ...apply.flatMap((checked, i) => (checked.ok ? [{ place: `apply[${i}]`, id: fragmentId(checked.fragment) }] : [])),
    ...remove.flatMap(({ value, problems }, i) =>
      problems.length === 0 ? [{ place: `delete[${i}]`, id: fragmentId(value) }] : [],
    ),
  ];
  reasons.push(...twiceReasons(named));
  if (listOf(body['apply']).length + listOf(body['delete']).length === 0 && shape.problems.length === 0) {
    reasons.push(
      ...reasonsOf('', [{ at: '', code: 'empty-change', message: 'there is nothing to apply and nothing to delete' }]),
    );
  }
  if (reasons.length > 0) return { ok: false, reasons };
  const { message = '', author = '', strategy = {}, retryOf = '' } = shape.value;
  return {
    ok: true,
    change: {
      apply: apply.flatMap((checked) => (checked.ok ? [checked.fragment] : [])),
      delete: remove.map(({ value }) => ({ kind: value.kind, name: value.name })),
      message,
      author,
      strategy: { ...strategy },
      retryOf,
    },
  };
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

function twiceReasons(named: readonly { readonly place: string; readonly id: string }[]): readonly Reason[] {
  const first = new Map<string, string>();
  return named.flatMap(({ place, id }) => {
    const before = first.get(id);
    if (before === undefined) {
      first.set(id, place);
      return [];
    }
    return [reasonFor({ fragment: id, field: place }, 'duplicate', `${id} is in both ${before} and ${place}`)];
  });
}
