import type { Config, ConfigEntry, Reason } from '#libs/contracts';
import type { Digest } from '#libs/engine';
import { isUnicode, type TemplatePart } from '#libs/manifests';
import { oncePerObject } from '../once-per-object.js';
import { canonicalJson } from './canonical-json.js';
import type { CompiledFragment, SpecTemplate } from './compiled.js';

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
  const entries: ConfigEntry[] = [];
  const pieces: string[] = [];
  for (const fragment of fragments) {
    const rendered = renderFragment(fragment, node, reasons);
    entries.push(rendered.entry);
    pieces.push(rendered.piece);
  }
  const text = configText(pieces);
  return { config: { fragments: entries }, text, hash: digest(text), recipe: set.recipe, reasons };
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
  const pieces = fragments.map(({ piece }) => piece);
  const recipe = digest(`[${pieces.join(',')}]`);
  const isPlain = fragments.every(({ template, problems }) => template === undefined && problems.length === 0);
  const text = configText(pieces);
  const config = { fragments: fragments.map(({ entry }) => entry) };
  return { recipe, plain: isPlain ? { config, text, hash: digest(text), recipe, reasons: [] } : undefined };
});

/** The canonical form of a config, from those of its entries: RFC 8785 has no space between them. */
const configText = (pieces: readonly string[]): string => `{"fragments":[${pieces.join(',')}]}`;

function renderFragment(
  fragment: CompiledFragment,
  node: TemplateNode,
  reasons: Reason[],
): { readonly entry: ConfigEntry; readonly piece: string } {
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
