import { fragmentId, reasonFor, type ConfigEntry, type Fragment, type Reason } from '#libs/contracts';
import {
  addressesIn,
  boundValuesIn,
  boundFieldKey,
  BOUND_VALUES,
  compositeKindOf,
  hasTemplate,
  hostNamesIn,
  isNodeKind,
  isObject,
  literalFields,
  parseTemplate,
  placeOf,
  resolvedNameId,
  selectorOf,
  selects,
  type NodeSelector,
  type TemplatePart,
} from '#libs/manifests';
import { compileBindings, NO_VALUES, type BoundValues, type CompiledBinding } from './bound-texts.js';
import { canonicalJson } from './canonical-json.js';

/** A fragment prepared once, so that rendering it for many nodes costs little. */
export interface CompiledFragment {
  readonly id: string;
  readonly selector: NodeSelector;
  /** The entry before templates are filled in, and its RFC 8785 form, from which the recipe is computed. */
  readonly entry: ConfigEntry;
  readonly piece: string;
  /** Makes the spec for a node; undefined if it is the same on every node. */
  readonly template: SpecTemplate | undefined;
  /** The values that its templates use besides those of the node. */
  readonly bindings: readonly CompiledBinding[];
  /** What is wrong with its templates, or with the names that it refers to, on any node. */
  readonly problems: readonly Reason[];
  /** The addresses of its host names, if it is rendered into other objects; undefined if it is an object itself. */
  readonly addresses?: Addresses;
}

/** IPv4 addresses by host name. */
export type Addresses = ReadonlyMap<string, readonly string[]>;

/** A spec, or a part of it, with its templates parsed. */
export type SpecTemplate =
  | { readonly is: 'constant'; readonly value: unknown }
  | { readonly is: 'text'; readonly field: string; readonly parts: readonly TemplatePart[] }
  | { readonly is: 'list'; readonly items: readonly SpecTemplate[] }
  | { readonly is: 'object'; readonly fields: readonly (readonly [string, SpecTemplate])[] };

/** Fragments never change, so each is compiled once. */
const COMPILED = new WeakMap<Fragment, CompiledFragment>();

/** Whether this fragment is already compiled. Compiling it again costs nothing. */
export const isCompiled = (fragment: Fragment): boolean => COMPILED.has(fragment);

/** Prepares a fragment that was checked. */
export function compileFragment(fragment: Fragment): CompiledFragment {
  const cached = COMPILED.get(fragment);
  if (cached !== undefined) return cached;
  const compiled = compile(fragment);
  COMPILED.set(fragment, compiled);
  return compiled;
}

function compile(fragment: Fragment): CompiledFragment {
  const { nodeSelector: _, deletion: __, ...spec } = (fragment.spec ?? {}) as Readonly<Record<string, unknown>>;
  const entry: ConfigEntry = { kind: fragment.kind, name: fragment.name, spec };
  const id = fragmentId(entry);
  const problems: Reason[] = [];
  const bindings = compileBindings(spec, id, problems);
  const template = compileObject(spec, 'spec', id, problems, literalFields(fragment.kind, spec));
  return {
    id,
    entry,
    problems,
    bindings,
    selector: selectorOf(fragment),
    piece: canonicalJson(entry),
    template: Object.hasOwn(spec, 'bindings') ? withoutBindings(template) : variable(template),
  };
}

const variable = (template: SpecTemplate): SpecTemplate | undefined =>
  template.is === 'constant' ? undefined : template;

/** They are no part of what a node gets. */
function withoutBindings(template: SpecTemplate): SpecTemplate {
  const fields =
    template.is === 'object'
      ? template.fields
      : Object.entries((template as { readonly value: object }).value).map(
          ([key, value]) => [key, { is: 'constant', value }] as const,
        );
  return { is: 'object', fields: fields.filter(([key]) => key !== 'bindings') };
}

/** Fragments prepared for rendering; policies are left out. */
export interface FragmentIndex {
  /** Every fragment of the index, sorted by kind, then name. */
  readonly all: readonly CompiledFragment[];
  /** Those that select a node with these labels, in the same order. The same set is the same array. */
  forNode(labels: Readonly<Record<string, string>>): readonly CompiledFragment[];
  /** What was read for the bindings of a node. */
  valuesOf(node: string): BoundValues;
}

/** Prepares fragments. Which nodes share a set of them is computed once. */
export function compileFragments(fragments: Iterable<Fragment>): FragmentIndex {
  const all = [...fragments];
  return indexOf(
    all.filter(({ kind }) => isNodeKind(kind)).map(compileFragment),
    all.filter(({ kind }) => !isNodeKind(kind)),
  );
}

/**
 * The same for fragments that are already compiled. `inputs` may contain the addresses of host names, and the values of
 * bindings.
 */
export function indexOf(compiled: Iterable<CompiledFragment>, inputs: Iterable<Fragment>): FragmentIndex {
  const named = [...compiled];
  const given = [...inputs];
  const bound = new Map(given.filter(({ kind }) => kind === BOUND_VALUES).map((one) => [one.name, one]));
  const needsNames = named.some(({ entry }) => isComposite(entry.kind));
  const names = needsNames ? addressesByName(given) : new Map<string, readonly string[]>();
  const all = (needsNames ? named.map((one) => withAddresses(one, names)) : named).sort(
    (a, b) => inOrder(a.entry.kind, b.entry.kind) || inOrder(a.entry.name, b.entry.name),
  );
  const sets = new Map<string, readonly CompiledFragment[]>();
  return {
    all,
    valuesOf: (node) => valuesIn(bound.get(node)),
    forNode(labels) {
      const fragments: CompiledFragment[] = [];
      let key = '';
      for (let i = 0; i < all.length; i++) {
        const each = all[i] as CompiledFragment;
        if (!selects(each.selector, labels)) continue;
        fragments.push(each);
        key += String.fromCharCode(i >>> 16, i & 0xffff);
      }
      const cached = sets.get(key);
      if (cached !== undefined) return cached;
      sets.set(key, fragments);
      return fragments;
    },
  };
}

function valuesIn(fragment: Fragment | undefined): BoundValues {
  if (fragment === undefined) return NO_VALUES;
  return new Map(boundValuesIn(fragment).map((one) => [boundFieldKey(one), one]));
}

const isComposite = (kind: string): boolean => compositeKindOf(kind) !== undefined;

const addressesByName = (inputs: Iterable<Fragment>): Addresses =>
  new Map(
    [...inputs].flatMap((fragment) => {
      const addresses = addressesIn(fragment);
      return addresses.length === 0 ? [] : [[fragment.name, addresses] as const];
    }),
  );

/** With other addresses, it is another recipe. */
function withAddresses(compiled: CompiledFragment, names: Addresses): CompiledFragment {
  if (!isComposite(compiled.entry.kind)) return compiled;
  const wanted = hostNamesIn(compiled.entry);
  const addresses = new Map(
    wanted.flatMap(({ name }) => {
      const found = names.get(name);
      return found === undefined ? [] : [[name, found] as const];
    }),
  );
  const missing = wanted
    .filter(({ name }) => !addresses.has(name))
    .map(({ field, name }): Reason => {
      const message = `the addresses of ${name} are not known yet: they are looked up as soon as the change is published, and sluice doctor says if that fails`;
      const place = { fragment: compiled.id, field: `spec.${field}` };
      return { ...reasonFor(place, 'missing-reference', message), needs: resolvedNameId(name) };
    });
  return {
    ...compiled,
    addresses,
    piece: canonicalJson({ ...compiled.entry, addresses: Object.fromEntries(addresses) }),
    problems: [...compiled.problems, ...missing],
  };
}

/** The labels of a node that templates use, each once. */
export function labelsIn(template: SpecTemplate | undefined): readonly string[] {
  switch (template?.is) {
    case undefined:
    case 'constant':
      return [];
    case 'text':
      return [...new Set(template.parts.flatMap((part) => (part.part === 'label' ? [part.key] : [])))];
    case 'list':
      return [...new Set(template.items.flatMap(labelsIn))];
    case 'object':
      return [...new Set(template.fields.flatMap(([, item]) => labelsIn(item)))];
  }
}

/** By code unit, like RFC 8785, independent of the locale. */
export const inOrder = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function compileValue(value: unknown, field: string, id: string, problems: Reason[]): SpecTemplate {
  if (typeof value === 'string') return compileText(value, field, id, problems);
  if (Array.isArray(value)) {
    const items = value.map((item, i) => compileValue(item, `${field}[${i}]`, id, problems));
    return items.every(({ is }) => is === 'constant') ? { is: 'constant', value } : { is: 'list', items };
  }
  return isObject(value) ? compileObject(value, field, id, problems) : { is: 'constant', value };
}

function compileObject(
  value: Readonly<Record<string, unknown>>,
  field: string,
  id: string,
  problems: Reason[],
  literal: readonly string[] = [],
): SpecTemplate {
  const fields = Object.entries(value).map(
    ([key, item]) =>
      [
        key,
        literal.includes(key)
          ? ({ is: 'constant', value: item } as const)
          : compileValue(item, placeOf(field, key), id, problems),
      ] as const,
  );
  return fields.every(([, { is }]) => is === 'constant') ? { is: 'constant', value } : { is: 'object', fields };
}

function compileText(text: string, field: string, id: string, problems: Reason[]): SpecTemplate {
  if (!hasTemplate(text)) return { is: 'constant', value: text };
  const parsed = parseTemplate(text);
  if (parsed.ok) return { is: 'text', field, parts: parsed.parts };
  for (const { code, message } of parsed.problems) problems.push(reasonFor({ fragment: id, field }, code, message));
  return { is: 'constant', value: text };
}
