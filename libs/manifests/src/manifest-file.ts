import {
  Composer,
  isMap,
  isPair,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  Parser,
  visit,
  type CST,
  type Document,
  type Pair,
} from 'yaml';
import { isObject, typeName } from './shape/reader.js';
import { MAX_DEPTH } from './json-form.js';
import { KUBERNETES_YAML, SLUICE_YAML, type YamlDialect } from './kubernetes-yaml.js';
import { ManifestSource, positionOf, type Position } from './manifest-source.js';
import type { Manifest } from './manifest.js';

/** The manifests of one file, and the parts that could not be read. */
export interface ManifestFile {
  readonly manifests: readonly Manifest[];
  /** Where each manifest is. */
  readonly sources: readonly ManifestSource[];
  readonly problems: readonly FileProblem[];
}

/** Why a part of a file cannot be read. */
export interface FileProblem extends Position {
  readonly message: string;
}

/** Reads a file of manifests: YAML or JSON, several documents, or several in one: an array or a `kind: List`. */
export function readManifests(text: string, dialect: YamlDialect = SLUICE_YAML): ManifestFile {
  const refusal = unusable(text);
  if (refusal !== undefined) return unread(refusal);
  const lines = new LineCounter();
  const tokens = [...new Parser(lines.addNewLine).parse(text)];
  const misshapen = tokens.flatMap((token) => (token.type === 'document' ? misshapenIn(token.value) : []))[0];
  if (misshapen !== undefined) return unread({ ...positionOf(lines, misshapen.offset), message: misshapen.message });
  const readAs = (one: YamlDialect): readonly ManifestFile[] => {
    const composer = new Composer({ ...one.options, lineCounter: lines, prettyErrors: false });
    return [...composer.compose(tokens)].map((document) => readDocument(document as Document, lines, one));
  };
  const own = readAs(dialect);
  const hasObjects = dialect === SLUICE_YAML && own.some(({ manifests }) => manifests.some(isOfKubernetes));
  const read = hasObjects ? withObjects(own, readAs(KUBERNETES_YAML)) : own;
  return {
    manifests: read.flatMap(({ manifests }) => manifests),
    sources: read.flatMap(({ sources }) => sources),
    problems: read.flatMap(({ problems }) => problems),
  };
}

/** Whether it contains manifests of Kubernetes. */
const isOfKubernetes = ({ kind }: { readonly kind?: unknown }): boolean => kind === 'KubeObjects';

/** Whether it is `spec.objects` of such a manifest. */
function isObjectsOfKubernetes({ key }: Pair, path: readonly unknown[]): boolean {
  const [manifest, spec] = path.slice(-3);
  return (
    isScalar(key) &&
    key.value === 'objects' &&
    isPair(spec) &&
    isScalar(spec.key) &&
    spec.key.value === 'spec' &&
    isMap(manifest) &&
    isOfKubernetes({ kind: manifest.get('kind') })
  );
}

/**
 * The manifests in a `KubeObjects` are what people give to kubectl: a value means what it means there. `0400` as the
 * mode of a Secret in a volume would be another mode in YAML 1.2.
 */
function withObjects(own: readonly ManifestFile[], kubernetes: readonly ManifestFile[]): readonly ManifestFile[] {
  return own.map((file, i) => {
    if (!file.manifests.some(isOfKubernetes)) return file;
    const other = kubernetes[i];
    if (other === undefined || other.problems.length > 0) return other ?? file;
    const manifests = file.manifests.map((manifest, j) => {
      const objects = isOfKubernetes(manifest) ? objectsIn(other.manifests[j]) : undefined;
      return objects === undefined ? manifest : { ...manifest, spec: { ...(manifest.spec as object), objects } };
    });
    return { ...file, manifests };
  });
}

const objectsIn = (manifest: Manifest | undefined): unknown =>
  isObject(manifest?.spec) ? manifest.spec['objects'] : undefined;

const unread = (...problems: readonly FileProblem[]): ManifestFile => ({ manifests: [], sources: [], problems });

/** For one document. A file with more problems is not a manifest. */
const MAX_PROBLEMS = 50;

/**
 * Words, signs and line ends of YAML, because they determine the cost of parsing, not bytes. The largest change with
 * the smallest manifests has fewer.
 */
const MAX_LEXEMES = 500_000;
/** Each key of a mapping is compared with all earlier ones. */
const MAX_KEYS = 10_000;

/** Why a text is not even parsed; undefined if it can be. */
function unusable(text: string): FileProblem | undefined {
  const nul = text.indexOf('\0');
  if (nul >= 0) return { ...positionIn(text, nul), message: 'contains a NUL byte; a manifest must be text' };
  let [count, at] = [0, 0];
  for (const lexeme of new Lexer().lex(text)) {
    count += 1;
    // The marks that the lexer inserts are not part of the text.
    if (!MARKS.has(lexeme)) at += lexeme.length;
    if (count > MAX_LEXEMES)
      return {
        ...positionIn(text, at),
        message: 'the manifests up to here already exceed what one change can hold; publish them as several changes',
      };
  }
  return undefined;
}

/** Of yaml's lexer: byte order mark, document, flow error end, scalar. */
const MARKS: ReadonlySet<string> = new Set(['\ufeff', '\u0002', '\u0018', '\u001f']);

function positionIn(text: string, offset: number): Position {
  const before = text.slice(0, offset);
  return { line: before.split('\n').length, column: offset - before.lastIndexOf('\n'), length: 1 };
}

/** Honest files repeat an anchor a few times; a YAML bomb repeats it by the thousand. */
const MAX_ALIASES = 50;

/**
 * The first place where composing would fail. Without recursion, because composing recurses: near the end of the stack,
 * V8 may abort instead of throwing.
 */
function misshapenIn(root: CST.Token | undefined): readonly { readonly offset: number; readonly message: string }[] {
  const open: { readonly token: CST.Token; readonly depth: number }[] =
    root === undefined ? [] : [{ token: root, depth: 1 }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { token, depth } = next;
    if (depth > MAX_DEPTH) return [{ offset: token.offset, message: `must not be nested deeper than ${MAX_DEPTH}` }];
    if (!('items' in token)) continue;
    const isMapping =
      token.type === 'block-map' || (token.type === 'flow-collection' && token.start.type === 'flow-map-start');
    if (isMapping && token.items.length > MAX_KEYS)
      return [{ offset: token.offset, message: `a mapping must not have more than ${MAX_KEYS} keys` }];
    for (const { key, value } of token.items as readonly CST.CollectionItem[]) {
      for (const child of [key, value]) if (child) open.push({ token: child, depth: depth + 1 });
    }
  }
  return [];
}

function readDocument(document: Document, lines: LineCounter, dialect: YamlDialect): ManifestFile {
  // yaml only warns about unknown tags, and would ignore them silently.
  const wrong = [...document.errors, ...document.warnings];
  if (wrong.length > 0)
    return unread(
      ...wrong.slice(0, MAX_PROBLEMS).map(({ pos, message }) => ({ ...positionOf(lines, pos[0], pos[1]), message })),
    );
  const ambiguous = dialect.ambiguous(document, isObjectsOfKubernetes);
  if (ambiguous.length > 0)
    return unread(
      ...ambiguous
        .slice(0, MAX_PROBLEMS)
        .map(({ range: [from = 0, to], message }) => ({ ...positionOf(lines, from, to), message })),
    );
  const start = positionOf(lines, document.contents?.range?.[0] ?? document.range?.[0] ?? 0);
  const value = toPlain(document, dialect);
  if (!value.ok) {
    const [from, to] = value.range ?? [];
    return unread({ ...(from === undefined ? start : positionOf(lines, from, to)), message: value.message });
  }
  if (value.plain === null || value.plain === undefined) return unread();
  const items = itemsOf(value.plain, document.contents).map(([plain, node]) => ({
    plain,
    source: new ManifestSource(document, node, lines),
    problem: itemProblem(plain),
  }));
  const manifests = items.filter(({ problem }) => problem === undefined);
  return {
    manifests: manifests.map(({ plain }) => plain as Manifest),
    sources: manifests.map(({ source }) => source),
    problems: items.flatMap(({ source, problem }) =>
      problem === undefined ? [] : [{ ...source.start, message: problem }],
    ),
  };
}

/**
 * The documents of an array, or of a `kind: List` as kubectl prints it, each with its node. `around`: what it is
 * in, because an alias can make a List contain itself.
 */
function itemsOf(
  plain: unknown,
  node: unknown,
  around: readonly unknown[] = [],
): readonly (readonly [unknown, unknown])[] {
  if (Array.isArray(plain) && around.length === 0) return eachOf(plain, node, [plain]);
  if (!isList(plain) || !Array.isArray(plain['items']) || around.includes(plain)) return [[plain, node]];
  return eachOf(plain['items'], isMap(node) ? node.get('items', true) : node, [...around, plain]);
}

const eachOf = (items: readonly unknown[], node: unknown, around: readonly unknown[]): ReturnType<typeof itemsOf> =>
  items.flatMap((item, i) => itemsOf(item, isSeq(node) ? node.items[i] : node, around));

const isList = (plain: unknown): plain is Readonly<Record<string, unknown>> =>
  isObject(plain) && plain['kind'] === 'List';

function itemProblem(plain: unknown): string | undefined {
  if (!isObject(plain)) return `must be a manifest, but is ${typeName(plain)}`;
  if (!isList(plain)) return undefined;
  return Array.isArray(plain['items'])
    ? 'a List must not contain itself'
    : 'a List must have items: a list of manifests';
}

function toPlain(
  document: Document,
  dialect: YamlDialect,
): { readonly ok: true; readonly plain: unknown } | YamlProblem {
  const message = dialect.problem(document);
  if (message !== undefined) return { ok: false, message };
  try {
    return { ok: true, plain: document.toJS({ maxAliasCount: MAX_ALIASES }) as unknown };
  } catch (error) {
    return { ok: false, message: (error as Error).message, range: unresolvedAlias(document) };
  }
}

interface YamlProblem {
  readonly ok: false;
  readonly message: string;
  /** The part of the text that is wrong, if it is not the document as a whole. */
  readonly range?: readonly number[] | undefined;
}

/** The first alias without an anchor before it: an anchor ends with its document. */
function unresolvedAlias(document: Document): readonly number[] | undefined {
  const anchors = new Set<string | undefined>();
  let position: readonly number[] | undefined;
  visit(document, {
    Value: (_, { anchor }) => void anchors.add(anchor),
    Alias: (_, { source, range }) => {
      if (anchors.has(source)) return undefined;
      position = range ?? undefined;
      return visit.BREAK;
    },
  });
  return position;
}
