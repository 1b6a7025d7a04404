import { definitionsOf, withTemplates } from './shape/json-schema.js';
import type { Schema } from './shape/checked.js';
import { KINDS } from './kinds/registry.js';
import type { Kind } from './kinds/kind.js';
import { MatchExpression, NodeSelector } from './selector.js';
import { API_VERSION, Metadata } from './manifest.js';

/** A JSON Schema (draft-07) of the full manifest of every kind, by kind. */
export const manifestSchemas = (): Readonly<Record<string, Schema>> =>
  Object.fromEntries(KINDS.map((kind) => [kind.name, schemaOf(kind)]));

/** What templates are never looked for in. */
const WITHOUT_TEMPLATES = [NodeSelector.name, MatchExpression.name];

function schemaOf(kind: Kind): Schema {
  const metadata = { $ref: `#/definitions/${Metadata.name}` };
  const reserved = kind.reservedNames.map((name) => ({ properties: { name: { not: { const: name } } } }));
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    $id: `https://sluice.dev/schemas/v1alpha1/${kind.name}.json`,
    title: kind.name,
    type: 'object',
    properties: {
      apiVersion: { const: API_VERSION },
      kind: { const: kind.name },
      // A draft-07 reference hides what stands beside it.
      metadata: reserved.length > 0 ? { allOf: [metadata, ...reserved] } : metadata,
      spec: { $ref: `#/definitions/${kind.spec.name}` },
    },
    required: ['apiVersion', 'kind', 'metadata', 'spec'],
    additionalProperties: false,
    definitions: { ...definitionsOf(Metadata), ...specDefinitions(kind) },
  };
}

function specDefinitions(kind: Kind): Readonly<Record<string, unknown>> {
  const definitions = definitionsOf(kind.spec);
  if (kind.role === 'policy') return definitions;
  return Object.fromEntries(
    Object.entries(definitions).map(([name, schema]) => [
      name,
      WITHOUT_TEMPLATES.includes(name) ? schema : withTemplates(schema),
    ]),
  );
}
