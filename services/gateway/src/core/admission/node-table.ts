import { selects, type NodeSelector } from '#libs/manifests';

/** A node, as far as admission looks at it. */
export interface ObservedNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly capabilities: readonly string[];
}

interface Row {
  readonly node: ObservedNode;
  /**
   * The sum of the marks of its capabilities and of all selectors that select it: nodes with the same sum have the same
   * fragments.
   */
  mark: number;
}

interface SelectorUse {
  readonly selector: NodeSelector;
  readonly mark: number;
  uses: number;
}

/**
 * A number holds no more than a mark and two selectors; who asks for more labels in one object is told of fewer that
 * are missing.
 */
const MOST_LABELS = 8;

/**
 * Nodes, and which of them have the same fragments. That is kept up as nodes and selectors come and go, so that a
 * question about ten thousand nodes costs one pass over them and not one for each fragment.
 */
export class NodeTable {
  private readonly rows = new Map<string, Row>();
  private readonly selectors = new Map<string, SelectorUse>();

  set(node: ObservedNode): void {
    let mark = markOf(`capabilities ${node.capabilities.join()}`);
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

  /**
   * Nodes that any of the one or two selectors selects, in groups of those that are alike: the same fragments, the same
   * capabilities, the same of these selectors, and which of these labels they have.
   */
  alike(selectors: readonly NodeSelector[], labelKeys: readonly string[]): readonly (readonly ObservedNode[])[] {
    const groups = new Map<number, ObservedNode[]>();
    const labels = labelKeys.slice(0, MOST_LABELS);
    for (const { node, mark } of this.rows.values()) {
      let chosen = 0;
      for (const selector of selectors) chosen = chosen * 2 + (selects(selector, node.labels) ? 1 : 0);
      if (chosen === 0) continue;
      let key = mark * 4 + chosen;
      for (const label of labels) key = key * 2 + (Object.hasOwn(node.labels, label) ? 1 : 0);
      const group = groups.get(key);
      if (group === undefined) groups.set(key, [node]);
      else group.push(node);
    }
    return [...groups.values()];
  }

  /** Whether a node is selected by both. */
  isShared(one: NodeSelector, other: NodeSelector): boolean {
    for (const { node } of this.rows.values())
      if (selects(one, node.labels) && selects(other, node.labels)) return true;
    return false;
  }
}

/**
 * FNV-1a in 32 bits: sums of a thousand of them leave room for what is put next to them. Sums that meet by chance would
 * only let two unlike nodes pass for alike.
 */
function markOf(text: string): number {
  let mark = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) mark = Math.imul(mark ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return mark + 1;
}
