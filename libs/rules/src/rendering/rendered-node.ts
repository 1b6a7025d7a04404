import { fragmentId, reasonFor, type Config, type ConfigEntry, type Reason } from '#libs/contracts';
import type { Digest } from '#libs/engine';
import { checkRendered, isUnicode, objectsOf, type TemplatePart } from '#libs/manifests';
import { oncePerObject } from '../once-per-object.js';
import { boundFieldsOf, boundRecipe, boundTexts, tooManyFields, type BoundNode } from './bound-texts.js';
import { canonicalJson } from './canonical-json.js';
import { inOrder, type CompiledFragment, type SpecTemplate } from './compiled.js';

/** What templates can refer to. */
export type TemplateNode = BoundNode;

/**
 * The config of a node and its identity. With reasons, the rest is what could be rendered: enough to find further
 * errors, but not to be used.
 */
export interface RenderedConfig {
  readonly config: Config;
  /** The config's RFC 8785 form, whose digest is `hash`. */
  readonly text: string;
  readonly hash: string;
  readonly recipe: string;
  readonly reasons: readonly Reason[];
}

/** Renders the fragments that select a node, as returned by `FragmentIndex.forNode`. */
export function renderNode(fragments: readonly CompiledFragment[], node: TemplateNode, digest: Digest): RenderedConfig {
  const set = sharedOf(fragments, digest);
  if (set.plain !== undefined) return set.plain;
  const reasons: Reason[] = [];
  const rendered = fragments.map((fragment) => renderFragment(fragment, node, reasons));
  const parts = withObjects(fragments, rendered, node.name, reasons);
  const recipe = recipeOf(fragments, set.recipe, node, reasons, digest);
  return { ...configOf(parts, digest), recipe, reasons };
}

/** The same fragments with other values are another recipe: one value that does harm says nothing about another. */
function recipeOf(
  fragments: readonly CompiledFragment[],
  recipe: string,
  node: TemplateNode,
  reasons: Reason[],
  digest: Digest,
): string {
  const bindings = fragments.flatMap((fragment) => fragment.bindings);
  if (bindings.every(({ field }) => field === undefined)) return recipe;
  reasons.push(...tooManyFields(boundFieldsOf(bindings, node).length, node.name));
  return digest(JSON.stringify([recipe, boundRecipe(bindings, node)]));
}

/** An entry of a config and its canonical form. */
interface Part {
  readonly entry: ConfigEntry;
  readonly piece: string;
}

function configOf(parts: readonly Part[], digest: Digest): Pick<RenderedConfig, 'config' | 'text' | 'hash'> {
  const text = configText(parts.map(({ piece }) => piece));
  return { config: { fragments: parts.map(({ entry }) => entry) }, text, hash: digest(text) };
}

/** Replaces each composite by the objects that it becomes. Keeps the first of two with the same name. */
function withObjects(
  fragments: readonly CompiledFragment[],
  rendered: readonly Part[],
  node: string,
  reasons: Reason[],
): readonly Part[] {
  if (fragments.every(({ addresses }) => addresses === undefined)) return rendered;
  const parts = new Map<string, Part>();
  fragments.forEach(({ addresses }, i) => {
    const part = rendered[i] as Part;
    if (addresses === undefined) parts.set(fragmentId(part.entry), part);
  });
  fragments.forEach(({ id, addresses }, i) => {
    if (addresses === undefined) return;
    const { entry } = rendered[i] as Part;
    const problems = checkRendered(entry);
    for (const problem of problems) reasons.push({ ...problem, nodes: [node] });
    if (problems.length > 0) return;
    for (const object of objectsOf(entry, addresses)) {
      const name = fragmentId(object);
      const other = parts.get(name);
      if (other === undefined) parts.set(name, { entry: object, piece: canonicalJson(object) });
      else reasons.push({ ...taken(id, name, other.entry), nodes: [node] });
    }
  });
  return [...parts.values()].sort((a, b) => inOrder(a.entry.kind, b.entry.kind) || inOrder(a.entry.name, b.entry.name));
}

function taken(fragment: string, object: string, { origin }: ConfigEntry): Reason {
  const other = origin === undefined ? `there is a ${object}` : `${origin} becomes one of that name`;
  const message = `becomes ${object}, but ${other}: choose another name for one of them`;
  return reasonFor({ fragment, field: 'metadata.name' }, 'conflict', message);
}

/** The identity of the config without any fragment. */
export const emptyHash = (digest: Digest): string => digest(configText([]));

/** The identity of a config. */
export const configHash = (config: Config, digest: Digest): string => digest(canonicalJson(config));

/** What all nodes with the same set of fragments share. */
interface FragmentSet {
  readonly recipe: string;
  /** The whole result, if no fragment has templates or problems. */
  readonly plain: RenderedConfig | undefined;
}

/**
 * The index returns the same array for the same set, so the array identifies the set. There is only one digest
 * function.
 */
const sharedOf = oncePerObject((fragments: readonly CompiledFragment[], digest: Digest): FragmentSet => {
  const recipe = digest(`[${fragments.map(({ piece }) => piece).join(',')}]`);
  const isPlain = fragments.every(({ template, problems }) => template === undefined && problems.length === 0);
  if (!isPlain) return { recipe, plain: undefined };
  const reasons: Reason[] = [];
  const parts = withObjects(fragments, fragments, '', reasons);
  return { recipe, plain: reasons.length === 0 ? { ...configOf(parts, digest), recipe, reasons } : undefined };
});

/** The canonical form of a config, from those of its entries: RFC 8785 has no space between them. */
const configText = (pieces: readonly string[]): string => `{"fragments":[${pieces.join(',')}]}`;

function renderFragment(fragment: CompiledFragment, node: TemplateNode, reasons: Reason[]): Part {
  for (const problem of fragment.problems) reasons.push({ ...problem, nodes: [node.name] });
  if (fragment.template === undefined) return fragment;
  const texts = boundTexts(fragment.bindings, node, fragment.id, reasons);
  const source = { node, fragment, texts, reasons };
  const spec = fill(fragment.template, source) as ConfigEntry['spec'];
  const entry = { ...fragment.entry, spec };
  return { entry, piece: canonicalJson(entry) };
}

/** Where the texts for templates come from, and where what is missing is noted. */
interface Source {
  readonly node: TemplateNode;
  readonly fragment: CompiledFragment;
  readonly texts: ReadonlyMap<string, string>;
  readonly reasons: Reason[];
}

function fill(template: SpecTemplate, source: Source): unknown {
  switch (template.is) {
    case 'constant':
      return template.value;
    case 'text':
      return template.parts.map((part) => fillPart(part, template.field, source)).join('');
    case 'list':
      return template.items.map((item) => fill(item, source));
    case 'object':
      return Object.fromEntries(template.fields.map(([key, item]) => [key, fill(item, source)]));
  }
}

function fillPart(part: TemplatePart, field: string, source: Source): string {
  const { node, reasons } = source;
  const fragment = source.fragment.id;
  if (part.part === 'text') return part.text;
  if (part.part === 'name') return node.name;
  if (part.part === 'binding') return fillBinding(part.name, field, source);
  const value = Object.hasOwn(node.labels, part.key) ? node.labels[part.key] : undefined;
  if (value !== undefined && isUnicode(value)) return value;
  const message =
    value === undefined
      ? `{{ node.labels.${part.key} }}: the node has no such label; it has ${listText(node.labels)}`
      : `{{ node.labels.${part.key} }}: the value contains an unpaired surrogate`;
  reasons.push({ fragment, field, code: 'unknown-template-key', message, nodes: [node.name] });
  return '';
}

/** What is missing has a reason already. */
function fillBinding(name: string, field: string, { node, fragment, texts, reasons }: Source): string {
  const names = fragment.bindings.map((binding) => binding.name);
  if (names.includes(name)) return texts.get(name) ?? '';
  const message = `{{ bindings.${name} }}: the fragment has no such binding; it has ${names.length === 0 ? 'none' : names.join(', ')}`;
  reasons.push({ fragment: fragment.id, field, code: 'unknown-template-key', message, nodes: [node.name] });
  return '';
}

/** Messages stay readable on nodes with a hundred labels. */
const MAX_LISTED = 20;

function listText(labels: Readonly<Record<string, string>>): string {
  const keys = Object.keys(labels).sort();
  if (keys.length === 0) return 'none';
  const rest = keys.length > MAX_LISTED ? ` and ${keys.length - MAX_LISTED} more` : '';
  return keys.slice(0, MAX_LISTED).join(', ') + rest;
}
