import { Composer, LineCounter, Parser, type CST, type Document } from 'yaml';
import { isObject } from './shape/reader.js';
import { typeName } from './shape/json-type.js';
import { MAX_DEPTH } from './json-form.js';
import type { Manifest } from './manifest.js';

/** The manifests of one file, and what of it could not be read. */
export interface ManifestFile {
  readonly manifests: readonly Manifest[];
  /** Where each manifest begins, as `file:line`. */
  readonly places: readonly string[];
  /** Each with file, line and column. */
  readonly problems: readonly string[];
}

/** Reads a file of manifests: YAML or JSON, several documents, or a list in one. */
export function readManifests(text: string, fileName: string): ManifestFile {
  const lines = new LineCounter();
  const tokens = [...new Parser(lines.addNewLine).parse(text)];
  const tooDeep = tokens.find((token) => token.type === 'document' && depthOf(token.value) > MAX_DEPTH);
  if (tooDeep !== undefined) {
    const { line, col } = lines.linePos(tooDeep.offset);
    return { manifests: [], places: [], problems: [`${fileName}:${line}:${col}: must not be nested deeper than ${MAX_DEPTH}`] };
  }
  const documents = [...new Composer({ lineCounter: lines, prettyErrors: false }).compose(tokens)] as readonly Document[];
  const read = documents.map((document) => readDocument(document, fileName, lines));
  return {
    manifests: read.flatMap(({ manifests }) => manifests),
    places: read.flatMap(({ places }) => places),
    problems: read.flatMap(({ problems }) => problems),
  };
}

/** Honest files repeat an anchor a few times; a YAML bomb repeats it by the thousand. */
const MAX_ALIASES = 50;

/** Without recursion, because composing recurses: near the end of the stack V8 does not throw, it may abort. */
function depthOf(root: CST.Token | undefined): number {
  let deepest = 0;
  const open: { readonly token: CST.Token; readonly depth: number }[] = root === undefined ? [] : [{ token: root, depth: 1 }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { token, depth } = next;
    deepest = Math.max(deepest, depth);
    if (!('items' in token)) continue;
    for (const { key, value } of token.items as readonly CST.CollectionItem[]) {
      for (const child of [key, value]) if (child) open.push({ token: child, depth: depth + 1 });
    }
  }
  return deepest;
}

function readDocument(document: Document, fileName: string, lines: LineCounter): ManifestFile {
  const position = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `${fileName}:${line}:${col}`;
  };
  if (document.errors.length > 0) {
    return { manifests: [], places: [], problems: document.errors.map(({ pos, message }) => `${position(pos[0])}: ${message}`) };
  }
  const start = document.contents?.range?.[0] ?? document.range?.[0] ?? 0;
  const value = toPlain(document);
  if (!value.ok) return { manifests: [], places: [], problems: [`${position(start)}: ${value.message}`] };
  if (value.plain === null || value.plain === undefined) return { manifests: [], places: [], problems: [] };
  const items: readonly unknown[] = Array.isArray(value.plain) ? value.plain : [value.plain];
  const bad = items.filter((item) => !isObject(item));
  return {
    manifests: items.filter(isObject),
    places: items.filter(isObject).map(() => `${fileName}:${lines.linePos(start).line}`),
    problems: bad.map((item) => `${position(start)}: must be a manifest, and is ${typeName(item)}`),
  };
}

function toPlain(document: Document): { readonly ok: true; readonly plain: unknown } | { readonly ok: false; readonly message: string } {
  try {
    return { ok: true, plain: document.toJS({ maxAliasCount: MAX_ALIASES }) as unknown };
  } catch (error) {
    return { ok: false, message: (error as Error).message };
  }
}
