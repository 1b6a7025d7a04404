import { targetConstructorToSchema } from 'class-validator-jsonschema';
import { aboutOf, descriptionOf } from './description.js';
import { fieldsOf } from './reader.js';
import { rulesOf, type Class, type Schema } from './checked.js';

/** JSON Schemas of a class and of all nested classes, by class name. Only declared fields are allowed. */
export function definitionsOf(type: Class, known: Record<string, Schema> = {}): Readonly<Record<string, Schema>> {
  if (Object.hasOwn(known, type.name)) return known;
  const generated = targetConstructorToSchema(type) as Schema;
  const rules = rulesOf(type).flatMap(({ schema }) => (Object.keys(schema).length === 0 ? [] : [schema]));
  const about = aboutOf(type);
  known[type.name] = {
    ...(about === undefined ? {} : { description: about }),
    ...generated,
    properties: described(type, generated['properties'] as Readonly<Record<string, Schema>> | undefined),
    additionalProperties: false,
    ...(rules.length > 0 ? { allOf: rules } : {}),
  };
  for (const { nesting } of fieldsOf(type).values()) {
    if (nesting !== undefined) definitionsOf(nesting.type(), known);
  }
  return known;
}

/** Each field with its description. In draft-07, a reference hides its sibling fields, so it is wrapped. */
function described(type: Class, properties: Readonly<Record<string, Schema>> = {}): Schema {
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => {
      const description = descriptionOf(type, name);
      if (description === undefined) return [name, schema];
      return [name, { description, ...('$ref' in schema ? { allOf: [schema] } : schema) }];
    }),
  );
}

/** The same schema for texts that may contain templates: such a text is valid in any form. */
export function withTemplates(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withTemplates);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { type, description, ...rest } = schema as Schema;
  if (type === 'string' && Object.keys(rest).length > 0)
    return {
      ...(description === undefined ? {} : { description }),
      anyOf: [
        { type, pattern: '\\{\\{' },
        { type, ...rest },
      ],
    };
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, withTemplates(value)]));
}
