/** A tree of fields, as in `fieldsV1`: an empty node is a field as a whole. */
export interface FieldTree {
  [key: string]: FieldTree;
}

type Fields = Record<string, unknown>;

/** The fields by which the items of a list are told apart, with what a missing one means. Other lists are one value. */
const LIST_KEYS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  containers: { name: undefined },
  env: { name: undefined },
  volumes: { name: undefined },
  volumeMounts: { mountPath: undefined },
  conditions: { type: undefined },
  'containers.ports': { containerPort: undefined, protocol: 'TCP' },
  'spec.ports': { port: undefined, protocol: 'TCP' },
};
/** Maps that are one value. */
const WHOLE = ['selector', 'nodeSelector'];
/** What belongs to nobody. */
const UNOWNED = ['apiVersion', 'kind'];
const UNOWNED_METADATA = [
  'name',
  'namespace',
  'resourceVersion',
  'uid',
  'generation',
  'creationTimestamp',
  'managedFields',
];

/** The fields that a manifest sets. */
export function fieldsOf(manifest: Fields): FieldTree {
  const { metadata, ...rest } = manifest;
  const tree: FieldTree = {};
  for (const [name, value] of Object.entries(rest))
    if (!UNOWNED.includes(name)) tree[`f:${name}`] = treeOf(value, name);
  const own = Object.entries((metadata ?? {}) as Fields).filter(([name]) => !UNOWNED_METADATA.includes(name));
  if (own.length > 0) tree['f:metadata'] = treeOf(Object.fromEntries(own), 'metadata');
  return tree;
}

function treeOf(value: unknown, at: string): FieldTree {
  const keys = keysAt(at);
  if (Array.isArray(value)) {
    if (keys === undefined) return {};
    return Object.fromEntries(
      (value as Fields[]).map((item) => [keyOf(item, keys), { '.': {}, ...treeOf(item, `${lastOf(at)}.item`) }]),
    );
  }
  if (!isFields(value) || WHOLE.includes(lastOf(at))) return {};
  return Object.fromEntries(
    Object.entries(value).map(([name, below]) => [`f:${name}`, treeOf(below, below === null ? '' : within(at, name))]),
  );
}

/** Where a field is, as far as the lists need it: its parent and its name. */
const within = (at: string, name: string): string =>
  at.endsWith('.item') ? `${at.slice(0, -'.item'.length)}.${name}` : `${lastOf(at)}.${name}`;
const lastOf = (at: string): string => at.slice(at.lastIndexOf('.') + 1);
const keysAt = (at: string) => LIST_KEYS[at] ?? LIST_KEYS[lastOf(at)];

const keyOf = (item: Fields, keys: Readonly<Record<string, unknown>>): string =>
  `k:${JSON.stringify(Object.fromEntries(Object.entries(keys).map(([key, otherwise]) => [key, item[key] ?? otherwise])))}`;

/** The paths of the fields of a tree, each as its steps. */
export function* leavesOf(tree: FieldTree, at: readonly string[] = []): Generator<readonly string[]> {
  const steps = Object.entries(tree);
  if (steps.length === 0 && at.length > 0) yield at;
  for (const [step, below] of steps) yield* leavesOf(below, [...at, step]);
}

export function has(tree: FieldTree, path: readonly string[]): boolean {
  let node: FieldTree | undefined = tree;
  for (const step of path) node = node?.[step];
  return node !== undefined && Object.keys(node).length === 0;
}

/** The tree without a field, and without nodes that have nothing left. */
export function without(tree: FieldTree, [step, ...rest]: readonly string[]): FieldTree {
  const below = step === undefined ? undefined : tree[step];
  if (step === undefined || below === undefined) return tree;
  const left = rest.length === 0 ? {} : without(below, rest);
  const { [step]: _, ...others } = tree;
  return Object.keys(left).length === 0 ? others : { ...others, [step]: left };
}

/** The value at a path; undefined if there is none. */
export function valueAt(value: unknown, [step, ...rest]: readonly string[]): unknown {
  if (step === undefined || step === '.') return value;
  if (step.startsWith('f:')) return isFields(value) ? valueAt(value[step.slice(2)], rest) : undefined;
  return valueAt(Array.isArray(value) ? (value as Fields[]).find((item) => isItem(item, step)) : undefined, rest);
}

/** Removes the field from the value, and lists and maps that are empty then. */
export function remove(value: unknown, [step, ...rest]: readonly string[]): void {
  if (step === undefined) return;
  if (Array.isArray(value)) {
    const at = (value as Fields[]).findIndex((item) => isItem(item, step));
    if (at < 0) return;
    if (rest.length === 0 || rest[0] === '.') value.splice(at, 1);
    else remove(value[at], rest);
    return;
  }
  if (!isFields(value)) return;
  const name = step.slice(2);
  if (rest.length === 0) delete value[name];
  else remove(value[name], rest);
  if (isFields(value[name]) && Object.keys(value[name]).length === 0) delete value[name];
}

const isItem = (item: Fields, step: string): boolean =>
  Object.entries(JSON.parse(step.slice(2)) as Fields).every(
    ([key, value]) => item[key] === value || (key === 'protocol' && item[key] === undefined && value === 'TCP'),
  );

/** Puts what a manifest says into the value. */
export function merge(into: Fields, from: Fields, at = ''): void {
  for (const [name, value] of Object.entries(from)) {
    const place = at === '' ? name : within(at, name);
    const keys = keysAt(place);
    const found = into[name];
    if (Array.isArray(value) && keys !== undefined && Array.isArray(found)) mergeItems(found, value, keys, name);
    else if (isFields(value) && isFields(found) && !WHOLE.includes(name)) merge(found, value, place);
    else into[name] = structuredClone(value);
  }
}

function mergeItems(
  into: Fields[],
  from: readonly Fields[],
  keys: Readonly<Record<string, unknown>>,
  at: string,
): void {
  for (const item of from) {
    const known = into.find((one) => keyOf(one, keys) === keyOf(item, keys));
    if (known === undefined) into.push(structuredClone(item));
    else merge(known, item, `${at}.item`);
  }
}

/** `.data.a`, or `.spec.containers[name="a"].image`. */
export const wordsOf = (path: readonly string[]): string =>
  path
    .map((step) => {
      if (step.startsWith('f:')) return `.${step.slice(2)}`;
      if (step === '.') return '';
      const keys = Object.entries(JSON.parse(step.slice(2)) as Fields);
      return `[${keys.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(',')}]`;
    })
    .join('');

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
