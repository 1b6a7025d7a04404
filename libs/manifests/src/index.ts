export * from './address.js';
export * from './change.js';
export * from './drains.js';
export { SHORT_NAME } from './fragment-name.js';
export * from './immutable.js';
export * from './json-form.js';
export * from './lean.js';
export * from './kinds/bgp-peering.js';
export * from './kinds/cluster/bindings.js';
export * from './kinds/cluster/flux-sync.js';
export { KUBE_NAME, KUBE_NAMESPACE } from './kinds/cluster/kube-forms.js';
export * from './kinds/cluster/kube-objects.js';
export * from './kinds/directory.js';
export * from './kinds/disruption-policy.js';
export * from './kinds/exec.js';
export { DRAIN_WORDS, DrainOnly, DrainRule, DrainSpec } from './kinds/drain.js';
export * from './kinds/file.js';
export * from './kinds/fleet-change.js';
export * from './kinds/kernel-arguments.js';
export * from './kinds/kind.js';
export * from './kinds/layer2-network.js';
export * from './kinds/link.js';
export * from './kinds/pool.js';
export * from './kinds/probe.js';
export * from './kinds/functions/function-review.js';
export * from './kinds/functions/composite-kinds.js';
export * from './kinds/registry.js';
export * from './kinds/resolved-name.js';
export * from './kinds/rollout-policy.js';
export * from './kinds/route-filter.js';
export * from './kinds/routing-table.js';
export * from './kinds/vrf.js';
export * from './kinds/ssh-keys.js';
export * from './kinds/sysctl.js';
export * from './kinds/systemd-unit.js';
export {
  checkManifest,
  nameInReasons,
  checkRendered,
  reasonsOf,
  type CheckedManifest,
  type Manifest,
} from './manifest.js';
export { KUBERNETES_YAML } from './kubernetes-yaml.js';
export * from './manifest-file.js';
export * from './manifest-source.js';
export * from './path.js';
export * from './policies.js';
export { purposesOf, type Purposed } from './purposes.js';
export * from './schemas.js';
export * from './selector.js';
export * from './template.js';
export * from './unit-name.js';
// Forms for other libraries that parse what people write.
export * from './shape/checked.js';
export * from './shape/forms.js';
export { definitionsOf } from './shape/json-schema.js';
export { knownWords } from './shape/nearest.js';
export { isObject, placeOf, readShape, type ShapeResult } from './shape/reader.js';
export * from './custom-resources/definitions.js';
export * from './custom-resources/admission.js';
export { withoutServerFields } from './custom-resources/server-fields.js';
export { compareDefinitions, type DefinitionDifference } from './custom-resources/differences.js';
export * from './requests/requests.js';
export * from './requests/forms.js';
export * from './requests/request-reader.js';
export * from './network/needs.js';
export * from './network/network-review.js';
