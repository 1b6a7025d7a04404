import { KINDS } from '../kinds/registry.js';
import { isObject } from '../shape/reader.js';
import { API_GROUP, API_GROUP_VERSION, customResourceDefinitions } from './definitions.js';

/** How the definition that an API server has of a kind differs from the one of this version. */
export interface DefinitionDifference {
  readonly kind: string;
  /** There is none at all. */
  readonly isMissing: boolean;
  /** Fields of the spec that it does not know: the API server drops them. */
  readonly lacks: readonly string[];
  /** Fields that this version does not know: it refuses them. */
  readonly adds: readonly string[];
}

type Tree = Readonly<Record<string, unknown>>;

/** Compares the definitions that an API server publishes of this group and version (OpenAPI v3) with those of this version, by the fields that each knows. */
export function compareDefinitions(openApi: unknown): readonly DefinitionDifference[] {
  const served = servedSpecs(openApi);
  return [...ownSpecs()].flatMap(([kind, own]): readonly DefinitionDifference[] => {
    const found = served.get(kind);
    if (found === undefined) return [{ kind, isMissing: true, lacks: [], adds: [] }];
    const [mine, theirs] = [fieldsBelow(own, 'spec'), fieldsBelow(found, 'spec')];
    // What is below a field that is missing is missing with it.
    const without = (all: readonly string[], others: readonly string[]): readonly string[] => all.filter((field) => !others.includes(field)).filter((field, _, missing) => !missing.some((one) => field.startsWith(`${one}.`) || field.startsWith(`${one}[`)));
    const [lacks, adds] = [without(mine, theirs), without(theirs, mine)];
    return lacks.length + adds.length === 0 ? [] : [{ kind, isMissing: false, lacks, adds }];
  });
}

function ownSpecs(): ReadonlyMap<string, Tree> {
  const names = new Set(KINDS.map(({ name }) => name));
  const all = Object.values(customResourceDefinitions()).map((definition) => at(definition, 'spec'));
  return new Map(all.map((spec) => [String(at(spec, 'names')['kind']), at((spec['versions'] as readonly Tree[])[0], 'schema', 'openAPIV3Schema', 'properties', 'spec')] as const).filter(([kind]) => names.has(kind)));
}

function servedSpecs(openApi: unknown): ReadonlyMap<string, Tree> {
  const found = new Map<string, Tree>();
  for (const schema of Object.values(at(openApi, 'components', 'schemas'))) {
    const names = isObject(schema) ? schema['x-kubernetes-group-version-kind'] : undefined;
    const own = Array.isArray(names) ? (names as readonly Tree[]).find(({ group, version }) => group === API_GROUP && version === API_GROUP_VERSION) : undefined;
    if (own !== undefined && at(schema, 'properties')['spec'] !== undefined) found.set(String(own['kind']), at(schema, 'properties', 'spec'));
  }
  return found;
}

/** Every field below a schema, as in `spec.drain.rules[].action`. */
function fieldsBelow(schema: Tree, place: string): readonly string[] {
  const named = Object.entries(at(schema, 'properties')).flatMap(([name, field]) => [`${place}.${name}`, ...(isObject(field) ? fieldsBelow(field, `${place}.${name}`) : [])]);
  return isObject(schema['items']) ? [...named, ...fieldsBelow(schema['items'], `${place}[]`)] : named;
}

function at(value: unknown, ...path: readonly string[]): Tree {
  let found: unknown = value;
  for (const key of path) found = isObject(found) ? found[key] : undefined;
  return isObject(found) ? found : {};
}
