import { aboutOf, descriptionOf } from './shape/description.js';
import { definitionsOf, withTemplates } from './shape/json-schema.js';
import type { Schema } from './shape/checked.js';
import { ContentSource } from './kinds/file.js';
import { isNodeKind, KINDS } from './kinds/registry.js';
import type { Kind } from './kinds/kind.js';
import { MatchExpression, NodeSelector } from './selector.js';
import { ManifestHead, Metadata } from './manifest.js';
import { API_VERSION } from './written-manifest.js';

/** A JSON Schema (draft-07) of the full manifest of every kind, by kind. */
export const manifestSchemas = (): Readonly<Record<string, Schema>> =>
  Object.fromEntries(KINDS.map((kind) => [kind.name, schemaOf(kind)]));

/** Fields without templates. */
const WITHOUT_TEMPLATES = [NodeSelector.name, MatchExpression.name, ContentSource.name];

function schemaOf(kind: Kind): Schema {
  const metadata = { $ref: `#/definitions/${Metadata.name}` };
  const names = [
    ...(kind.reservedNames ?? []).map((name) => ({ not: { const: name } })),
    ...(kind.nameForm === undefined ? [] : [kind.nameForm.schema]),
  ].map((name) => ({ properties: { name } }));
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    $id: `https://sluice.dev/schemas/v1alpha1/${kind.name}.json`,
    title: kind.name,
    description: aboutOf(kind.spec),
    type: 'object',
    properties: {
      apiVersion: { description: descriptionOf(ManifestHead, 'apiVersion'), const: API_VERSION },
      kind: { description: descriptionOf(ManifestHead, 'kind'), const: kind.name },
      // A draft-07 reference hides its sibling fields.
      metadata: { description: descriptionOf(ManifestHead, 'metadata'), allOf: [metadata, ...names] },
      spec: {
        description: descriptionOf(ManifestHead, 'spec'),
        allOf: [{ $ref: `#/definitions/${kind.spec.name}` }],
      },
    },
    required: ['apiVersion', 'kind', 'metadata', 'spec'],
    additionalProperties: false,
    definitions: { ...definitionsOf(Metadata), ...specDefinitions(kind) },
  };
}

function specDefinitions(kind: Kind): Readonly<Record<string, unknown>> {
  const definitions = definitionsOf(kind.spec);
  if (!isNodeKind(kind.name)) return definitions;
  return Object.fromEntries(
    Object.entries(definitions).map(([name, schema]) => [
      name,
      WITHOUT_TEMPLATES.includes(name) ? schema : withTemplates(schema),
    ]),
  );
}
