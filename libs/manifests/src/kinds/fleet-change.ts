import { About, Fields } from '../shape/description.js';
import { isObject } from '../shape/reader.js';
import { ManifestList } from '../shape/forms.js';
import { NodeSpec, type Kind } from './kind.js';

/** Config for the nodes of another fleet, which has a Sluice of its own. */
@About(
  'Config for the nodes of another fleet, which has a Sluice of its own. It is published there as one change, and is applied once its rollout there has succeeded.',
)
@Fields({
  apply:
    'Manifests to publish in the other fleet, each with `apiVersion`, `kind`, `metadata` and `spec`. Selectors and templates in them are about the nodes of that fleet. A fragment that the list does not contain any more is deleted there.',
})
export class FleetChangeSpec extends NodeSpec {
  @ManifestList() readonly apply!: readonly unknown[];
}

/** No two objects of a fleet publish the same fragment there. */
export const fleetChange: Kind = {
  name: 'FleetChange',
  spec: FleetChangeSpec,
  role: 'state',
  literal: () => ['apply'],
  manifests: 'apply',
  claims: ({ apply }) => (Array.isArray(apply) ? apply : []).flatMap((manifest) => claimOf(manifest)),
};

function claimOf(manifest: unknown): readonly string[] {
  if (!isObject(manifest) || !isObject(manifest['metadata'])) return [];
  const { kind, metadata } = manifest;
  return [`${String(kind)}/${String(metadata['name'])} of the other fleet`];
}
