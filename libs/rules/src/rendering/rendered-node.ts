import { fragmentId, reasonFor, type Config, type ConfigEntry, type Reason } from '#libs/contracts';
import type { Digest } from '#libs/engine';
import { checkRendered, isUnicode, objectsOf, type TemplatePart } from '#libs/manifests';
import { oncePerObject } from '../once-per-object.js';
import { canonicalJson } from './canonical-json.js';
import { inOrder, type CompiledFragment, type SpecTemplate } from './compiled.js';

/** What templates can refer to. */
export interface TemplateNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

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
  return { ...configOf(parts, digest), recipe: set.recipe, reasons };
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
  const spec = fill(fragment.template, node, fragment.id, reasons) as ConfigEntry['spec'];
  const entry = { ...fragment.entry, spec };
  return { entry, piece: canonicalJson(entry) };
}

function fill(template: SpecTemplate, node: TemplateNode, fragment: string, reasons: Reason[]): unknown {
  switch (template.is) {
    case 'constant':
      return template.value;
    case 'text':
      return template.parts.map((part) => fillPart(part, template.field, node, fragment, reasons)).join('');
    case 'list':
      return template.items.map((item) => fill(item, node, fragment, reasons));
    case 'object':
      return Object.fromEntries(template.fields.map(([key, item]) => [key, fill(item, node, fragment, reasons)]));
  }
}

function fillPart(part: TemplatePart, field: string, node: TemplateNode, fragment: string, reasons: Reason[]): string {
  if (part.part === 'text') return part.text;
  if (part.part === 'name') return node.name;
  const value = Object.hasOwn(node.labels, part.key) ? node.labels[part.key] : undefined;
  if (value !== undefined && isUnicode(value)) return value;
  const message =
    value === undefined
      ? `{{ node.labels.${part.key} }}: the node has no such label; it has ${listText(node.labels)}`
      : `{{ node.labels.${part.key} }}: the value contains an unpaired surrogate`;
  reasons.push({ fragment, field, code: 'unknown-template-key', message, nodes: [node.name] });
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
