import { targetConstructorToSchema } from 'class-validator-jsonschema';
import { rulesOf, type Class, type Nesting, type Schema } from '../shape/checked.js';
import { fieldsOf, isObject } from '../shape/reader.js';
import { descriptionOf } from '../shape/description.js';
import { ContentSource } from '../kinds/file.js';
import { NodeSelector } from '../selector.js';
import { goPattern } from './pattern.js';

/**
 * A class as a structural schema of Kubernetes: everything inline, types outside of all conditions. Unknown fields are
 * not mentioned: the API server refuses or prunes them, as the client asks.
 */
export function structuralOf(type: Class, templated: boolean): Schema {
  const generated =
    (targetConstructorToSchema(type) as { readonly properties?: Readonly<Record<string, Schema>> }).properties ?? {};
  const fields = [...fieldsOf(type)];
  const properties = fields.map(
    ([name, { nesting }]) =>
      [
        name,
        described(
          descriptionOf(type, name),
          nesting === undefined ? leaf(generated[name] ?? {}, templated) : nested(nesting, templated),
        ),
      ] as const,
  );
  const required = fields.filter(([, { optional }]) => !optional).map(([name]) => name);
  return {
    type: 'object',
    ...(required.length === 0 ? {} : { required }),
    properties: Object.fromEntries(properties),
    ...rules(type),
  };
}

const described = (description: string | undefined, schema: Schema): Schema =>
  description === undefined ? schema : { description, ...schema };

const TEMPLATE = { pattern: '\\{\\{' };
/** What the checks express better, or what Kubernetes does not support. */
const LEFT_OUT: ReadonlySet<string> = new Set(['format', 'propertyNames']);

/** Fields without templates. */
const WITHOUT_TEMPLATES: readonly Class[] = [NodeSelector, ContentSource];

function nested({ type, list, atMost, orWord }: Nesting, templated: boolean): Schema {
  // A structural schema cannot say "text or object": the webhook and the merger check the value.
  if (orWord !== undefined) return { 'x-kubernetes-preserve-unknown-fields': true };
  const one = structuralOf(type(), templated && !WITHOUT_TEMPLATES.includes(type()));
  return list ? { type: 'array', ...(atMost === undefined ? {} : { maxItems: atMost }), items: one } : one;
}

function rules(type: Class): Schema {
  const all = rulesOf(type);
  const expressions = all.flatMap((rule) => rule.expressions ?? []);
  const schemas = all
    .filter((rule) => rule.expressions === undefined)
    .map(({ schema }) => schema)
    .filter((schema) => Object.keys(schema).length > 0);
  return {
    ...(expressions.length === 0 ? {} : { 'x-kubernetes-validations': expressions }),
    ...(schemas.length === 0 ? {} : { allOf: schemas }),
  };
}

function leaf(schema: Schema, templated: boolean): Schema {
  if (Array.isArray(schema['anyOf'])) return intOrString(schema['anyOf'] as readonly Schema[]);
  // Objects of any kind: without this, the API server would remove their fields.
  if (schema['type'] === 'object' && Array.isArray(schema['required']))
    return { ...schema, 'x-kubernetes-preserve-unknown-fields': true };
  if ('const' in schema) return { type: typeof schema['const'], enum: [schema['const']] };
  const { type, pattern, items, ...kept } = Object.fromEntries(
    Object.entries(schema).filter(([key]) => !LEFT_OUT.has(key)),
  ) as Schema;
  if (isObject(items)) return { type, ...kept, items: leaf(items, templated) };
  const rest = { ...kept, ...(typeof pattern === 'string' ? goPattern(pattern) : {}) };
  // A text that may contain templates is valid in any form.
  return templated && type === 'string' && Object.keys(rest).length > 0
    ? { type, anyOf: [TEMPLATE, rest] }
    : { type, ...rest };
}

/** A number or a text: limits apply to the one, patterns to the other. */
function intOrString(variants: readonly Schema[]): Schema {
  const conditions = Object.assign({}, ...variants.map(({ type: _, ...rest }) => rest)) as Schema;
  return { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }], ...conditions };
}
