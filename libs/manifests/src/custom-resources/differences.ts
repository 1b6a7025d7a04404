import { isObject } from '../shape/reader.js';
import { API_GROUP, API_GROUP_VERSION, customResourceDefinitions } from './definitions.js';

/** How the API server's definition of a kind differs from the one of this version. */
export interface DefinitionDifference {
  readonly kind: string;
  /** There is none at all. */
  readonly isMissing: boolean;
  /** Fields of the spec that it does not have: the API server drops them. */
  readonly lacks: readonly string[];
  /** Fields that this version does not have: it refuses them. */
  readonly adds: readonly string[];
}

type Tree = Readonly<Record<string, unknown>>;

/** The schema of a kind, of which two properties are used. */
interface KindSchema {
  readonly spec: Tree;
  readonly status: Tree;
}

/**
 * Compares the definitions that an API server publishes for this group and version (OpenAPI v3) with those of this
 * version, by their fields. In a status, only missing fields count, because only the gateway writes it.
 */
export function compareDefinitions(openApi: unknown): readonly DefinitionDifference[] {
  const served = servedSchemas(openApi);
  return [...ownSchemas()].flatMap(([kind, own]): readonly DefinitionDifference[] => {
    const schemas = served.get(kind);
    if (schemas === undefined) return [{ kind, isMissing: true, lacks: [], adds: [] }];
    const [mine, theirs] = [fieldsBelow(own.spec, 'spec'), fieldsBelow(schemas.spec, 'spec')];
    const lacks = [
      ...without(mine, theirs),
      ...without(fieldsBelow(own.status, 'status'), fieldsBelow(schemas.status, 'status')),
    ];
    const adds = without(theirs, mine);
    return lacks.length + adds.length === 0 ? [] : [{ kind, isMissing: false, lacks, adds }];
  });
}

/** If a field is missing, so is everything below it. */
const without = (all: readonly string[], others: readonly string[]): readonly string[] =>
  all
    .filter((field) => !others.includes(field))
    .filter((field, _, missing) => !missing.some((one) => field.startsWith(`${one}.`) || field.startsWith(`${one}[`)));

function ownSchemas(): ReadonlyMap<string, KindSchema> {
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

function servedSchemas(openApi: unknown): ReadonlyMap<string, KindSchema> {
  const found = new Map<string, KindSchema>();
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

const halvesOf = (schema: unknown): KindSchema => ({
  spec: at(schema, 'properties', 'spec'),
  status: at(schema, 'properties', 'status'),
});

/** Every field below a schema, as in `spec.drain.rules[].action`. */
function fieldsBelow(schema: Tree, place: string): readonly string[] {
  const fields = Object.entries(at(schema, 'properties')).flatMap(([name, field]) => [
    `${place}.${name}`,
    ...(isObject(field) ? fieldsBelow(field, `${place}.${name}`) : []),
  ]);
  return isObject(schema['items']) ? [...fields, ...fieldsBelow(schema['items'], `${place}[]`)] : fields;
}

function at(value: unknown, ...path: readonly string[]): Tree {
  let found: unknown = value;
  for (const key of path) found = isObject(found) ? found[key] : undefined;
  return isObject(found) ? found : {};
}
