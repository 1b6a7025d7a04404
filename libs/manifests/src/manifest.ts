import { Fields } from './shape/description.js';
import { fragmentId, isDnsSubdomain, reasonFor, type ConfigEntry, type Fragment, type Reason } from '#libs/contracts';
import { Nested, Optional, type Problem, type Stage } from './shape/checked.js';
import { AnyObject, Exactly, LabelMap, Text } from './shape/forms.js';
import { knownWords } from './shape/nearest.js';
import { isObject, placeOf, readShape, typeName } from './shape/reader.js';
import { FRAGMENT_NAME } from './fragment-name.js';
import { jsonProblems } from './json-form.js';
import { isNodeKind, KINDS, kindOf, literalFields } from './kinds/registry.js';
import type { Kind } from './kinds/kind.js';
import { parseTemplate } from './template.js';
import { API_VERSION } from './written-manifest.js';

/** A manifest as a person wrote it, not checked yet. */
export interface Manifest {
  readonly apiVersion?: unknown;
  readonly kind?: unknown;
  readonly metadata?: unknown;
  readonly spec?: unknown;
}

/** The fragment of a manifest, or every reason why it is invalid. */
export type CheckedManifest =
  | { readonly ok: true; readonly fragment: Fragment }
  | { readonly ok: false; readonly reasons: readonly Reason[] };

/** The name of a fragment, and its labels. */
@Fields({
  name: 'Name of the object, unique for its kind. A DNS subdomain such as `resolv.conf`.',
  labels: 'Labels of the object itself. They select nothing and are not part of what nodes get.',
})
export class Metadata {
  @Text(FRAGMENT_NAME) readonly name!: string;
  @Optional() @LabelMap() readonly labels?: Readonly<Record<string, string>>;
}

/** The fields that all manifests have. */
@Fields({
  apiVersion: 'Version of the format.',
  kind: 'Kind of the object.',
  metadata: 'Name and labels of the object.',
  spec: 'The desired state. Its fields depend on the kind.',
})
export class ManifestHead {
  @Exactly(API_VERSION, 'bad-api-version') readonly apiVersion!: string;
  @Text() readonly kind!: string;
  @Nested(() => Metadata) readonly metadata!: Metadata;
  @AnyObject() readonly spec!: Readonly<Record<string, unknown>>;
}

/** Checks a manifest in every way that needs no node; `place` names it as long as it has no name of its own. */
export function checkManifest(document: unknown, place: string): CheckedManifest {
  const name = nameInReasons(document, place);
  const toReasons = (problems: readonly Problem[]): CheckedManifest => ({
    ok: false,
    reasons: reasonsOf(name, problems),
  });
  const form = jsonProblems(document);
  if (form.length > 0) return toReasons(form);
  if (!isObject(document))
    return toReasons([{ at: '', code: 'wrong-type', message: `must be a manifest, but is ${typeName(document)}` }]);
  const head = readShape(ManifestHead, document);
  const kind = typeof document['kind'] === 'string' ? kindOf(document['kind']) : undefined;
  const problems = [...head.problems, ...kindProblems(document, kind), ...specProblems(document['spec'], kind)];
  return problems.length > 0 ? toReasons(problems) : { ok: true, fragment: fragmentOf(head.value) };
}

/** The problems of a kind's spec; `at` is relative to the spec. With `written`, it may still contain templates. */
function problemsOfSpec(kind: Kind, spec: unknown, stage: Stage): readonly Problem[] {
  // Policies and inputs are not rendered, so what looks like a template is meant literally.
  const templated = stage === 'written' && isNodeKind(kind.name);
  return [
    ...readShape(kind.spec, spec, templated ? 'written' : 'rendered').problems,
    ...(templated && isObject(spec) ? templateProblems(withoutLiteral(kind, spec), '') : []),
    ...(kind.manifests !== undefined && isObject(spec) ? nestedProblems(kind.manifests, spec[kind.manifests]) : []),
  ];
}

/** The problems of manifests that are for another fleet. */
function nestedProblems(field: string, manifests: unknown): readonly Problem[] {
  if (!Array.isArray(manifests)) return [];
  const checked = manifests.map((document: unknown) => checkManifest(document, ''));
  const ids = checked.map((one) => (one.ok ? fragmentId(one.fragment) : undefined));
  return checked.flatMap((one, i): readonly Problem[] => {
    const place = `${field}[${i}]`;
    if (!one.ok)
      return one.reasons.flatMap((reason) =>
        inside(place, [{ at: reason.field, code: reason.code, message: reason.message }]),
      );
    const first = ids.indexOf(ids[i]);
    return first === i
      ? []
      : [{ at: place, code: 'duplicate', message: `is ${String(ids[i])}, like ${field}[${first}]: keep one of them` }];
  });
}

/** Converts problems to reasons about one fragment. */
export const reasonsOf = (fragment: string, problems: readonly Problem[]): readonly Reason[] =>
  problems.map(({ at, code, message }) => reasonFor({ fragment, field: at }, code, message));

/** Moves the problems of a part to its place in the whole. */
export const inside = (place: string, problems: readonly Problem[]): readonly Problem[] =>
  problems.map((problem) => ({
    ...problem,
    at: problem.at === '' || problem.at.startsWith('[') ? `${place}${problem.at}` : `${place}.${problem.at}`,
  }));

/** The name of a manifest in reasons: that of its fragment if kind and name are valid, otherwise its place. */
export function nameInReasons(document: unknown, place: string): string {
  if (!isObject(document) || !isObject(document['metadata'])) return place;
  const { kind } = document;
  const { name } = document['metadata'];
  if (typeof kind !== 'string' || kind === '' || typeof name !== 'string' || !isDnsSubdomain(name)) return place;
  return fragmentId({ kind: kind.slice(0, 63), name });
}

function kindProblems(document: Readonly<Record<string, unknown>>, kind: Kind | undefined): readonly Problem[] {
  const { kind: kindName, metadata } = document;
  if (kind === undefined) {
    if (typeof kindName !== 'string') return [];
    return [
      {
        at: 'kind',
        code: 'unknown-kind',
        message: `unknown kind; ${knownWords(kindName, 'kinds', KIND_NAMES)}`,
      },
    ];
  }
  const name = isObject(metadata) ? metadata['name'] : undefined;
  // An invalid name already has a problem.
  if (typeof name !== 'string' || !isDnsSubdomain(name)) return [];
  const at = 'metadata.name';
  if (kind.reservedNames?.includes(name) === true)
    return [{ at, code: 'reserved-name', message: `a ${kind.name} cannot be named ${name}` }];
  const problem = kind.nameForm?.problem(name);
  return problem === undefined ? [] : [{ at, code: 'bad-name', message: problem }];
}

const KIND_NAMES = KINDS.map(({ name }) => name);

const specProblems = (spec: unknown, kind: Kind | undefined): readonly Problem[] =>
  kind === undefined || !isObject(spec) ? [] : inside('spec', problemsOfSpec(kind, spec, 'written'));

function withoutLiteral(kind: Kind, spec: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const literal = literalFields(kind.name, spec);
  return literal.length === 0
    ? spec
    : Object.fromEntries(Object.entries(spec).filter(([field]) => !literal.includes(field)));
}

/** Every string in a spec is a template, except in the selector. */
function templateProblems(value: unknown, at: string): readonly Problem[] {
  if (typeof value === 'string') {
    const parsed = parseTemplate(value);
    return parsed.ok ? [] : parsed.problems.map((problem) => ({ at, ...problem }));
  }
  if (Array.isArray(value)) return value.flatMap((item, i) => templateProblems(item, `${at}[${i}]`));
  if (!isObject(value)) return [];
  return Object.keys(value).flatMap((key) =>
    at === '' && key === 'nodeSelector' ? [] : templateProblems(value[key], placeOf(at, key)),
  );
}

const fragmentOf = (head: ManifestHead): Fragment =>
  ({ kind: head.kind, name: head.metadata.name, labels: head.metadata.labels ?? {}, spec: head.spec }) as Fragment;

/** Checks a rendered fragment completely: without templates, every form applies. */
export function checkRendered(entry: ConfigEntry): readonly Reason[] {
  const fragment = fragmentId(entry);
  const form = jsonProblems(entry.spec);
  if (form.length > 0) return reasonsOf(fragment, inside('spec', form));
  const kind = kindOf(entry.kind);
  if (kind === undefined || !isNodeKind(kind.name)) {
    const known = KINDS.filter(({ role }) => role === 'state')
      .map(({ name }) => name)
      .join(', ');
    return reasonsOf(fragment, [
      { at: 'kind', code: 'unknown-kind', message: `unknown kind for a node; known kinds: ${known}` },
    ]);
  }
  if (Object.hasOwn(entry.spec, 'nodeSelector')) {
    return reasonsOf(fragment, [
      { at: 'spec.nodeSelector', code: 'unknown-field', message: 'a rendered fragment has no nodeSelector' },
    ]);
  }
  return reasonsOf(fragment, inside('spec', problemsOfSpec(kind, { ...entry.spec, nodeSelector: {} }, 'rendered')));
}
