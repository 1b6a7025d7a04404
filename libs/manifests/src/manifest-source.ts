import { isAlias, isMap, isNode, isScalar, isSeq, type Document, type LineCounter, type Node } from 'yaml';

/** A piece of a line of a text. Lines and columns count from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
  /** In characters, at least 1. */
  readonly length: number;
}

/** The position of a piece of a text. It ends with its line. */
export function positionOf(lines: LineCounter, start: number, end = start + 1): Position {
  const { line, col } = lines.linePos(start);
  const next = lines.lineStarts[line] ?? Number.POSITIVE_INFINITY;
  return { line, column: col, length: Math.max(1, Math.min(end, next - 1) - start) };
}

/** The source of a manifest. */
export class ManifestSource {
  constructor(
    private readonly document: Document,
    private readonly node: unknown,
    private readonly lines: LineCounter,
  ) {}

  /** Where it begins. */
  get start(): Position {
    return this.position(this.node) ?? { line: 1, column: 1, length: 1 };
  }

  /**
   * The position of a field with the name that reasons use (`spec.ports[0].name`): its value, or its key if the value
   * has more than one word. If the field is missing, the object that lacks it.
   */
  find(field: string, what: 'key' | 'value' = 'value'): Position {
    let [node, position] = [this.resolved(this.node), this.start];
    for (const step of stepsOf(field)) {
      if (isMap(node)) {
        const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === step);
        if (pair === undefined) return position;
        const value = what === 'value' && isScalar(pair.value) ? this.position(pair.value) : undefined;
        position = value ?? this.position(pair.key) ?? position;
        node = this.resolved(pair.value);
      } else if (isSeq(node) && typeof step === 'number' && step < node.items.length) {
        position = this.position(node.items[step]) ?? position;
        node = this.resolved(node.items[step]);
      } else return position;
    }
    return position;
  }

  private resolved(node: unknown): unknown {
    return isAlias(node) ? node.resolve(this.document) : node;
  }

  private position(node: unknown): Position | undefined {
    const range = isNode(node) ? (node as Node).range : undefined;
    return range ? positionOf(this.lines, range[0], range[1]) : undefined;
  }
}

/** `spec.labels["a.b"][0]` as spec, labels, a.b, 0. */
function stepsOf(field: string): readonly (string | number)[] {
  return [...field.matchAll(/\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|([^.[\]]+)/g)].map(([, index, quoted, name]) =>
    index !== undefined ? Number(index) : quoted !== undefined ? (JSON.parse(quoted) as string) : (name as string),
  );
}
