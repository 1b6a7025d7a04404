import { reasonFor, type BoundField, type BoundValue, type Reason } from '#libs/contracts';
import {
  bindingsIn,
  boundFieldKey,
  boundFieldText,
  boundValuesId,
  KUBE_NAME,
  KUBE_NAMESPACE,
  MOST_BOUND_VALUES,
  parseTemplate,
  type TemplatePart,
} from '#libs/manifests';

type Spec = Readonly<Record<string, unknown>>;

/** What a binding refers to, before the templates in it are filled in. */
interface CompiledField extends Pick<BoundField, 'from' | 'apiVersion' | 'kind' | 'fieldPath'> {
  readonly namespace: readonly TemplatePart[];
  readonly name: readonly TemplatePart[];
}

/** A binding of a fragment, prepared once. */
export interface CompiledBinding {
  readonly name: string;
  /** Its place in the fragment. */
  readonly place: string;
  readonly label: string | undefined;
  readonly field: CompiledField | undefined;
  readonly otherwise: string | undefined;
}

/** What bindings can refer to. */
export interface BoundNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** What was read for it, by field. */
  readonly values?: BoundValues;
  /** Whether its applier reads objects. */
  readonly readsObjects?: boolean;
  /** Its applier says nothing now, so it will not report a value soon. */
  readonly isSilent?: boolean;
}

/** By `boundFieldKey`. */
export type BoundValues = ReadonlyMap<string, BoundValue>;
export const NO_VALUES: BoundValues = new Map();

/**
 * The code of a reason why a fragment cannot be rendered for a node: a value is missing. If it also says what it
 * needs, the value has not been read yet. Otherwise the node is left out, and others are not held up.
 */
export const MISSING_VALUE = 'missing-value';

/** Whether a reason only concerns its node, which waits for a value. */
export const isHeldBack = ({ code, needs }: Reason): boolean => code === MISSING_VALUE && needs === undefined;

/** Prepares the bindings of a fragment that was checked. */
export function compileBindings(spec: Spec, fragment: string, problems: Reason[]): readonly CompiledBinding[] {
  return bindingsIn({ spec }).map(({ name, label, object, default: otherwise }, i) => {
    const place = `spec.bindings[${i}]`;
    const parts = (field: string, text: string): readonly TemplatePart[] => {
      const parsed = parseTemplate(text);
      const reason = { fragment, field: `${place}.object.${field}` };
      if (parsed.ok && parsed.parts.every(({ part }) => part !== 'binding')) return parsed.parts;
      if (parsed.ok)
        problems.push(reasonFor(reason, 'bad-template', 'the name of an object cannot come from another binding'));
      else for (const { code, message } of parsed.problems) problems.push(reasonFor(reason, code, message));
      return [{ part: 'text', text }];
    };
    const field = object && {
      from: object.from === 'hub' ? ('hub' as const) : ('cluster' as const),
      apiVersion: object.apiVersion,
      kind: object.kind,
      fieldPath: object.fieldPath,
      namespace: parts('namespace', object.namespace ?? ''),
      name: parts('name', object.name),
    };
    return { name, place, label, field, otherwise };
  });
}

/** The field that a binding means on a node, or why that cannot be said. */
function fieldOn({ field }: CompiledBinding, node: BoundNode): BoundField | string | undefined {
  if (field === undefined) return undefined;
  let problem: string | undefined;
  const text = (parts: readonly TemplatePart[]): string =>
    parts
      .map((part) => {
        if (part.part === 'text') return part.text;
        if (part.part === 'name') return node.name;
        const value = part.part === 'label' && Object.hasOwn(node.labels, part.key) ? node.labels[part.key] : undefined;
        if (value === undefined && part.part === 'label') problem = `the node has no label ${part.key}`;
        return value ?? '';
      })
      .join('');
  const { from, apiVersion, kind, fieldPath } = field;
  const [namespace, name] = [text(field.namespace), text(field.name)];
  problem ??= namespace === '' ? undefined : aboutPart('namespace', KUBE_NAMESPACE.problem(namespace));
  problem ??= aboutPart('name', KUBE_NAME.problem(name));
  return problem ?? { from, apiVersion, kind, namespace, name, fieldPath };
}

const aboutPart = (what: string, problem: string | undefined): string | undefined =>
  problem === undefined ? undefined : `the ${what} of the object ${problem}`;

/** The fields that these bindings mean on a node, each once. */
export function boundFieldsOf(bindings: readonly CompiledBinding[], node: BoundNode): readonly BoundField[] {
  const fields = new Map<string, BoundField>();
  for (const binding of bindings) {
    const field = fieldOn(binding, node);
    if (typeof field === 'object') fields.set(boundFieldKey(field), field);
  }
  return [...fields].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, field]) => field);
}

/** The texts of the bindings of a fragment on a node. Those without one have a reason. */
export function boundTexts(
  bindings: readonly CompiledBinding[],
  node: BoundNode,
  fragment: string,
  reasons: Reason[],
): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const binding of bindings) {
    const found = resolve(binding, node);
    if (found.is === 'text') texts.set(binding.name, found.text);
    else if (found.is === 'missing' && binding.otherwise !== undefined) texts.set(binding.name, binding.otherwise);
    else {
      const message = `binding ${binding.name}: ${found.why}`;
      const reason = reasonFor({ fragment, field: binding.place, nodes: [node.name] }, MISSING_VALUE, message);
      reasons.push(found.is === 'unread' ? { ...reason, needs: boundValuesId(node.name) } : reason);
    }
  }
  return texts;
}

type Resolved =
  | { readonly is: 'text'; readonly text: string }
  /** There is none: the default is used. */
  | { readonly is: 'missing'; readonly why: string }
  /** It will be known soon. */
  | { readonly is: 'unread'; readonly why: string }
  /** It will be known when the node returns. */
  | { readonly is: 'away'; readonly why: string };

function resolve(binding: CompiledBinding, node: BoundNode): Resolved {
  if (binding.label !== undefined) {
    const value = Object.hasOwn(node.labels, binding.label) ? node.labels[binding.label] : undefined;
    if (value !== undefined) return { is: 'text', text: value };
    return { is: 'missing', why: `the node has no label ${binding.label}` };
  }
  const field = fieldOn(binding, node);
  if (field === undefined || typeof field === 'string') return { is: 'missing', why: field ?? 'nothing is bound' };
  const what = boundFieldText(field);
  const known = node.values?.get(boundFieldKey(field));
  if (known?.value !== undefined) return { is: 'text', text: known.value };
  if (known !== undefined) return { is: 'missing', why: `${what} cannot be used: ${known.missing}` };
  if (node.readsObjects !== true)
    return {
      is: 'missing',
      why: `${what} cannot be read: the applier of the node reads no objects. Upgrade it, or select only clusters`,
    };
  const again = 'is not known yet';
  return node.isSilent === true
    ? { is: 'away', why: `${what} ${again}, and the node is silent` }
    : { is: 'unread', why: `${what} ${again}: the applier of the node reads it as soon as the change is published` };
}

/** What the recipe of a node depends on besides its fragments: the values of fields. */
export function boundRecipe(
  bindings: readonly CompiledBinding[],
  node: BoundNode,
): readonly (readonly [string, string])[] {
  return boundFieldsOf(bindings, node).map((field) => {
    const key = boundFieldKey(field);
    return [key, node.values?.get(key)?.value ?? ''] as const;
  });
}

/** A node has more bound fields than fit into a message. */
export function tooManyFields(fields: number, node: string): readonly Reason[] {
  if (fields <= MOST_BOUND_VALUES) return [];
  const message = `the fragments of the node have bindings to ${fields} fields; the limit is ${MOST_BOUND_VALUES}`;
  return [reasonFor({ nodes: [node] }, 'too-many', message)];
}
