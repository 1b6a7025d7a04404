import { targetConstructorToSchema } from 'class-validator-jsonschema';
import { fieldsOf } from './reader.js';
import { rulesOf, type Class, type Schema } from './checked.js';

/** JSON Schemas of a class and of all that it nests, by class name. Nothing beyond the declared fields is allowed. */
export function definitionsOf(type: Class, known: Record<string, Schema> = {}): Readonly<Record<string, Schema>> {
  if (Object.hasOwn(known, type.name)) return known;
  const generated = targetConstructorToSchema(type) as Schema;
  const rules = rulesOf(type).map((rule) => rule.schema);
  known[type.name] = { ...generated, additionalProperties: false, ...(rules.length > 0 ? { allOf: rules } : {}) };
  for (const { nesting } of fieldsOf(type).values()) {
    if (nesting !== undefined) definitionsOf(nesting.type(), known);
  }
  return known;
}

/** The same schema for texts that may hold templates: such a text is right in any form. */
export function withTemplates(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withTemplates);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { type, ...rest } = schema as Schema;
  if (type === 'string' && Object.keys(rest).length > 0) return { anyOf: [{ type, pattern: '\\{\\{' }, schema] };
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, withTemplates(value)]));
}
