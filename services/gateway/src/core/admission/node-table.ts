import { selects, type NodeSelector } from '#libs/manifests';

/** A node, as far as admission looks at it. */
export interface SeenNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly capabilities: readonly string[];
}

interface Row {
  readonly node: SeenNode;
  /** The sum of the marks of all selectors that select it: nodes with the same sum have the same fragments. */
  mark: number;
}

interface Known {
  readonly selector: NodeSelector;
  readonly mark: number;
  uses: number;
}

/**
 * Nodes, and which of them have the same fragments. That is kept up as nodes and selectors come and go, so that a question about ten thousand
 * nodes costs one pass over them and not one for each fragment.
 */
export class NodeTable {
  private readonly rows = new Map<string, Row>();
  private readonly selectors = new Map<string, Known>();

  set(node: SeenNode): void {
    let mark = 0;
    for (const known of this.selectors.values()) if (selects(known.selector, node.labels)) mark += known.mark;
    this.rows.set(node.name, { node, mark });
  }

  remove(name: string): void {
    this.rows.delete(name);
  }

  /** A fragment with this selector is in force from now on. */
  use(selector: NodeSelector): void {
    const key = JSON.stringify(selector);
    const known = this.selectors.get(key);
    if (known !== undefined) {
      known.uses += 1;
      return;
    }
    const added = { selector, mark: markOf(key), uses: 1 };
    this.selectors.set(key, added);
    for (const row of this.rows.values()) if (selects(selector, row.node.labels)) row.mark += added.mark;
  }

  /** One with this selector is no longer. */
  drop(selector: NodeSelector): void {
    const key = JSON.stringify(selector);
    const known = this.selectors.get(key);
    if (known === undefined || (known.uses -= 1) > 0) return;
    this.selectors.delete(key);
    for (const row of this.rows.values()) if (selects(selector, row.node.labels)) row.mark -= known.mark;
  }

  /** Nodes that any of the selectors selects, in groups of those that are alike: the same fragments, the same capabilities, the same of these selectors, and which of these labels they have. */
  alike(selectors: readonly NodeSelector[], labelKeys: readonly string[]): readonly (readonly SeenNode[])[] {
    const groups = new Map<string, SeenNode[]>();
    for (const { node, mark } of this.rows.values()) {
      const chosen = selectors.map((selector) => (selects(selector, node.labels) ? '1' : '0')).join('');
      if (!chosen.includes('1')) continue;
      const key = `${mark} ${chosen} ${labelKeys.map((label) => (Object.hasOwn(node.labels, label) ? '1' : '0')).join('')} ${node.capabilities.join()}`;
      const group = groups.get(key);
      if (group === undefined) groups.set(key, [node]);
      else group.push(node);
    }
    return [...groups.values()];
  }

  /** Whether a node is selected by both. */
  isShared(one: NodeSelector, other: NodeSelector): boolean {
    for (const { node } of this.rows.values()) if (selects(one, node.labels) && selects(other, node.labels)) return true;
    return false;
  }
}

/** FNV-1a in 32 bits: sums of a million of them are exact. Sums that meet by chance would only let two unlike nodes pass for alike. */
function markOf(text: string): number {
  let mark = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) mark = Math.imul(mark ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return mark + 1;
}
