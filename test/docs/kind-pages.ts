import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { manifestSchemas } from '#libs/manifests';

/** The parts of a JSON Schema that a page shows. */
interface Shape {
  readonly $ref?: string;
  readonly allOf?: readonly Shape[];
  readonly anyOf?: readonly Shape[];
  readonly type?: string;
  readonly description?: string;
  readonly enum?: readonly string[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: Shape;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
  readonly definitions?: Readonly<Record<string, Shape>>;
}

/** The pages of docs/reference/kinds, by file name, before formatting. */
export function kindPages(root: string): Readonly<Record<string, string>> {
  const examples = examplesByKind(root);
  const schemas = Object.entries(manifestSchemas()) as readonly (readonly [string, Shape])[];
  const pages = schemas.map(([kind, schema]) => [`${kind}.md`, page(kind, schema, examples)] as const);
  return { 'README.md': index(schemas), ...Object.fromEntries(pages) };
}

interface Example {
  readonly folder: string;
  readonly text: string;
}

/** The first manifest of each kind, in the order of the examples. */
function examplesByKind(root: string): ReadonlyMap<string, Example> {
  const found = new Map<string, Example>();
  const folders = readdirSync(join(root, 'examples')).filter((name) => /^\d\d-/.test(name));
  for (const folder of folders.sort()) {
    for (const file of readdirSync(join(root, 'examples', folder)).sort()) {
      if (!file.endsWith('.yaml')) continue;
      for (const text of readFileSync(join(root, 'examples', folder, file), 'utf8').split(/^---\n/m)) {
        const kind = /^kind: (\w+)$/m.exec(text)?.[1] ?? '';
        if (!found.has(kind)) found.set(kind, { folder, text });
      }
    }
  }
  return found;
}

const GENERATED = '<!-- Made by npm run reference. Change the class in libs/manifests/src/kinds instead. -->';

function index(schemas: readonly (readonly [string, Shape])[]): string {
  const rows = schemas.map(([kind, { description = '' }]) => `| [${kind}](${kind}.md) | ${description} |`);
  return [GENERATED, '# Kinds', ['| Kind | |', '| --- | --- |', ...rows].join('\n'), ''].join('\n\n');
}

function page(kind: string, schema: Shape, examples: ReadonlyMap<string, Example>): string {
  const definitions = schema.definitions ?? {};
  const example = examples.get(kind);
  const shown = example === undefined ? [] : ['## Example', `\`\`\`yaml\n${example.text}\`\`\``];
  const from = example === undefined ? [] : [`From [examples/${example.folder}](../../../examples/${example.folder}).`];
  const parts = sections('spec', schema.properties?.['spec'] ?? {}, definitions);
  const also = `The same as a JSON Schema, for editors: [${kind}.json](../../schemas/v1alpha1/${kind}.json).`;
  return [GENERATED, `# ${kind}`, schema.description ?? '', ...shown, ...from, '## Fields', ...parts, also, ''].join(
    '\n\n',
  );
}

/** A table of the fields of an object, and then one for each nested object. */
function sections(place: string, shape: Shape, definitions: Readonly<Record<string, Shape>>): readonly string[] {
  const { properties = {}, required = [] } = resolved(shape, definitions);
  const rows: string[] = [];
  const below: string[] = [];
  for (const [name, field] of Object.entries(properties)) {
    const needed = required.includes(name) ? 'yes' : '';
    const description = (field.description ?? '').replaceAll('|', '\\|');
    rows.push(`| \`${name}\` | ${typeOf(field)} | ${needed} | ${description} |`);
    const item = resolved(field.type === 'array' ? (field.items ?? {}) : field, definitions);
    const at = `${place}.${name}${field.type === 'array' ? '[]' : ''}`;
    if (item.properties !== undefined) below.push(...sections(at, item, definitions));
  }
  const table = ['| Field | Type | Required | Description |', '| --- | --- | --- | --- |', ...rows].join('\n');
  return [`### \`${place}\``, table, ...below];
}

function resolved(shape: Shape, definitions: Readonly<Record<string, Shape>>): Shape {
  const reference = [shape, ...(shape.allOf ?? []), ...(shape.anyOf ?? [])].find(
    ({ $ref }) => $ref !== undefined,
  )?.$ref;
  return reference === undefined ? shape : (definitions[reference.replace('#/definitions/', '')] ?? {});
}

function typeOf(field: Shape): string {
  if (field.type === 'array') {
    const of = typeOf(field.items ?? {});
    return `list of ${of === 'text' ? 'texts' : of === 'object' ? 'objects' : of}`;
  }
  if (field.const !== undefined) return `\`${JSON.stringify(field.const)}\``;
  // A text that may contain templates has two variants. The second is the specific one.
  const variants = field.anyOf ?? [];
  const own = variants.find(({ enum: enumValues }) => enumValues !== undefined);
  const words = field.enum ?? own?.enum;
  const isObject = variants.some(({ $ref }) => $ref !== undefined);
  if (words !== undefined) return `${words.map((word) => `\`${word}\``).join(', ')}${isObject ? ' or object' : ''}`;
  if (variants.length > 0) return [...new Set(variants.map((one) => typeOf(one)))].join(' or ');
  if (field.type === 'integer') return `number from ${field.minimum ?? '…'} to ${field.maximum ?? '…'}`;
  if (field.type === 'boolean') return '`true` or `false`';
  return field.type === 'string' ? 'text' : 'object';
}
