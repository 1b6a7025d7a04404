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

/** A kind's schema, of which two properties count. */
interface Halves {
  readonly spec: Tree;
  readonly status: Tree;
}

/**
 * Compares the definitions that an API server publishes of this group and version (OpenAPI v3) with those of this
 * version, by the fields that each knows. Of a status only what it lacks counts, for nobody else writes it.
 */
export function compareDefinitions(openApi: unknown): readonly DefinitionDifference[] {
  const served = servedSchemas(openApi);
  return [...ownSchemas()].flatMap(([kind, own]): readonly DefinitionDifference[] => {
    const found = served.get(kind);
    if (found === undefined) return [{ kind, isMissing: true, lacks: [], adds: [] }];
    const [mine, theirs] = [fieldsBelow(own.spec, 'spec'), fieldsBelow(found.spec, 'spec')];
    const lacks = [
      ...without(mine, theirs),
      ...without(fieldsBelow(own.status, 'status'), fieldsBelow(found.status, 'status')),
    ];
    const adds = without(theirs, mine);
    return lacks.length + adds.length === 0 ? [] : [{ kind, isMissing: false, lacks, adds }];
  });
}

/** What is below a field that is missing is missing with it. */
const without = (all: readonly string[], others: readonly string[]): readonly string[] =>
  all
    .filter((field) => !others.includes(field))
    .filter((field, _, missing) => !missing.some((one) => field.startsWith(`${one}.`) || field.startsWith(`${one}[`)));

function ownSchemas(): ReadonlyMap<string, Halves> {
  const all = Object.values(customResourceDefinitions()).map((definition) => at(definition, 'spec'));
  return new Map(
    all.map(
      (spec) =>
        [
          String(at(spec, 'names')['kind']),
          halvesOf(at((spec['versions'] as readonly Tree[])[0], 'schema', 'openAPIV3Schema')),
        ] as const,
    ),
  );
}

function servedSchemas(openApi: unknown): ReadonlyMap<string, Halves> {
  const found = new Map<string, Halves>();
  for (const schema of Object.values(at(openApi, 'components', 'schemas'))) {
    const names = isObject(schema) ? schema['x-kubernetes-group-version-kind'] : undefined;
    const own = Array.isArray(names)
      ? (names as readonly Tree[]).find(({ group, version }) => group === API_GROUP && version === API_GROUP_VERSION)
      : undefined;
    if (own !== undefined && at(schema, 'properties')['spec'] !== undefined)
      found.set(String(own['kind']), halvesOf(schema));
  }
  return found;
}

const halvesOf = (schema: unknown): Halves => ({
  spec: at(schema, 'properties', 'spec'),
  status: at(schema, 'properties', 'status'),
});

/** Every field below a schema, as in `spec.drain.rules[].action`. */
function fieldsBelow(schema: Tree, place: string): readonly string[] {
  const named = Object.entries(at(schema, 'properties')).flatMap(([name, field]) => [
    `${place}.${name}`,
    ...(isObject(field) ? fieldsBelow(field, `${place}.${name}`) : []),
  ]);
  return isObject(schema['items']) ? [...named, ...fieldsBelow(schema['items'], `${place}[]`)] : named;
}

function at(value: unknown, ...path: readonly string[]): Tree {
  let found: unknown = value;
  for (const key of path) found = isObject(found) ? found[key] : undefined;
  return isObject(found) ? found : {};
}
