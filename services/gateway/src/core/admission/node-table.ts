import { selects, type NodeSelector } from '#libs/manifests';

/** A node, as far as admission needs it. */
export interface ObservedNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly capabilities: readonly string[];
}

interface Row {
  readonly node: ObservedNode;
  /**
   * The sum of the marks of its capabilities and of all selectors that select it. Nodes with the same sum have the same
   * fragments.
   */
  mark: number;
}

interface SelectorUse {
  readonly selector: NodeSelector;
  readonly mark: number;
  uses: number;
}

/** A number can hold a mark and two selectors. If an object requires more labels, fewer missing ones are reported. */
const MOST_LABELS = 8;

/**
 * Nodes, and which of them have the same fragments. Kept up to date as nodes and selectors change, so that a question
 * about ten thousand nodes takes one pass over them, not one for each fragment.
 */
export class NodeTable {
  private readonly rows = new Map<string, Row>();
  private readonly selectors = new Map<string, SelectorUse>();

  set(node: ObservedNode): void {
    let mark = markOf(`capabilities ${node.capabilities.join()}`);
    for (const selector of this.selectors.values()) if (selects(selector.selector, node.labels)) mark += selector.mark;
    this.rows.set(node.name, { node, mark });
  }

  remove(name: string): void {
    this.rows.delete(name);
  }

  /** A fragment with this selector exists from now on. */
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

  /** A fragment with this selector no longer exists. */
  drop(selector: NodeSelector): void {
    const key = JSON.stringify(selector);
    const known = this.selectors.get(key);
    if (known === undefined || (known.uses -= 1) > 0) return;
    this.selectors.delete(key);
    for (const row of this.rows.values()) if (selects(selector, row.node.labels)) row.mark -= known.mark;
  }

  /**
   * Nodes that any of the one or two selectors selects, in groups of equal nodes: the same fragments, the same
   * capabilities, the same of these selectors, and the same of these labels.
   */
  alike(selectors: readonly NodeSelector[], labelKeys: readonly string[]): readonly (readonly ObservedNode[])[] {
    const groups = new Map<number, ObservedNode[]>();
    const labels = labelKeys.slice(0, MOST_LABELS);
    for (const { node, mark } of this.rows.values()) {
      let mask = 0;
      for (const selector of selectors) mask = mask * 2 + (selects(selector, node.labels) ? 1 : 0);
      if (mask === 0) continue;
      let key = mark * 4 + mask;
      for (const label of labels) key = key * 2 + (Object.hasOwn(node.labels, label) ? 1 : 0);
      const group = groups.get(key);
      if (group === undefined) groups.set(key, [node]);
      else group.push(node);
    }
    return [...groups.values()];
  }

  /** Whether both select a node. */
  isShared(one: NodeSelector, other: NodeSelector): boolean {
    for (const { node } of this.rows.values())
      if (selects(one, node.labels) && selects(other, node.labels)) return true;
    return false;
  }
}

/**
 * FNV-1a in 32 bits. Sums of a thousand marks leave room for the other bits. If two sums were equal by chance, two
 * different nodes would count as equal.
 */
function markOf(text: string): number {
  let mark = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) mark = Math.imul(mark ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return mark + 1;
}
