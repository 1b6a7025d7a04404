import { About, Fields } from '../../shape/description.js';
import { Checked, Optional, type Check, type Problem } from '../../shape/checked.js';
import { Flag, type TextForm } from '../../shape/forms.js';
import { KUBE_API_VERSION, KUBE_KIND, KUBE_NAME, KUBE_NAMESPACE } from './kube-forms.js';
import { isObject, typeName } from '../../shape/reader.js';
import { hasTemplate } from '../../template.js';
import { utf8Bytes } from '../../json-form.js';
import { NodeSpec, type Kind } from '../kind.js';
import { BindingList, BINDINGS_ABOUT, NamedBindings, type Binding } from './bindings.js';
import { APPLY_SET, groupKindOf, isNamespaced, kubeObjectId, kubeObjectsOf, type KubeManifest } from './kube-object.js';

const MOST_OBJECTS = 1_000;
/** The most bytes of one object. An API server refuses a request with more than about 1.5 MB. */
const MOST_OBJECT_BYTES = 1_000_000;
/** What the API server sets, so that a manifest cannot. */
const SERVER_FIELDS = ['uid', 'resourceVersion', 'generation', 'managedFields', 'selfLink', 'deletionTimestamp'];

/** Kinds that are no desired state, or that the cluster itself writes, with the reason. */
const REFUSED: ReadonlyMap<string, string> = new Map([
  ...['Node', 'Event', 'Event.events.k8s.io', 'Endpoints', 'ComponentStatus', 'Binding'].map(own),
  ...['Lease.coordination.k8s.io', 'EndpointSlice.discovery.k8s.io', 'ControllerRevision.apps'].map(own),
  ...['VolumeAttachment.storage.k8s.io', 'CSINode.storage.k8s.io', 'CSIStorageCapacity.storage.k8s.io'].map(own),
  ...['CertificateSigningRequest.certificates.k8s.io', 'Eviction.policy'].map(request),
]);

function own(kind: string): readonly [string, string] {
  return [kind, 'the cluster itself writes such objects'];
}
function request(kind: string): readonly [string, string] {
  return [kind, 'it is a request, not a state that an object can be kept in'];
}

/** What is wrong with one object of a Kubernetes API, as far as that is known without a cluster. */
const objectProblems: Check = (value, stage) => {
  if (!isObject(value)) return [problem('', 'wrong-type', `must be an object, but is ${typeName(value)}`)];
  const { apiVersion, kind, metadata } = value;
  const head = [...headProblem('apiVersion', apiVersion, KUBE_API_VERSION), ...headProblem('kind', kind, KUBE_KIND)];
  // A List as kubectl prints it has no name.
  if (typeof kind === 'string' && LISTS.test(kind) && Array.isArray(value['items']))
    return [problem('kind', 'forbidden', 'a list cannot be rolled out: write its items as objects')];
  if (!isObject(metadata))
    return [
      ...head,
      problem('metadata', metadata === undefined ? 'required' : 'wrong-type', 'must be an object with a name'),
    ];
  const isOpen = (text: unknown): boolean => stage === 'written' && typeof text === 'string' && hasTemplate(text);
  const problems = [
    ...head,
    ...nameProblems(metadata, isOpen),
    ...serverFieldProblems(value, metadata),
    ...(head.length > 0 ? [] : kindProblems(value as KubeManifest, isOpen)),
  ];
  const bytes = utf8Bytes(JSON.stringify(value));
  if (bytes > MOST_OBJECT_BYTES)
    problems.push(problem('', 'too-large', `has ${bytes} bytes; the limit is ${MOST_OBJECT_BYTES}`));
  return problems;
};

const problem = (at: string, code: string, message: string): Problem => ({ at, code, message });

function headProblem(field: string, value: unknown, form: TextForm): readonly Problem[] {
  if (value === undefined) return [problem(field, 'required', 'is required')];
  const message = typeof value === 'string' ? form.problem(value) : `must be a string, but is ${typeName(value)}`;
  return message === undefined ? [] : [problem(field, form.code, message)];
}

function nameProblems(
  { name, namespace, generateName }: Readonly<Record<string, unknown>>,
  isOpen: (text: unknown) => boolean,
): Problem[] {
  const problems: Problem[] = [];
  if (generateName !== undefined)
    problems.push(
      problem('metadata.generateName', 'forbidden', 'the object would be created again and again: give it a name'),
    );
  else if (name === undefined) problems.push(problem('metadata.name', 'required', 'is required'));
  else if (!isOpen(name)) problems.push(...headProblem('metadata.name', name, KUBE_NAME));
  if (namespace !== undefined && !isOpen(namespace))
    problems.push(...headProblem('metadata.namespace', namespace, KUBE_NAMESPACE));
  return problems;
}

/** `creationTimestamp: null` is in what many tools generate. */
function serverFieldProblems(
  object: Readonly<Record<string, unknown>>,
  metadata: Readonly<Record<string, unknown>>,
): Problem[] {
  const set = SERVER_FIELDS.filter((field) => metadata[field] !== undefined).map((field) => `metadata.${field}`);
  if (metadata['creationTimestamp'] !== undefined && metadata['creationTimestamp'] !== null)
    set.push('metadata.creationTimestamp');
  if (object['status'] !== undefined) set.push('status');
  return set.map((at) => problem(at, 'forbidden', 'the cluster sets it: leave it out'));
}

function kindProblems(object: KubeManifest, isOpen: (text: unknown) => boolean): Problem[] {
  const kind = groupKindOf(object);
  const refused = REFUSED.get(kind);
  if (refused !== undefined) return [problem('kind', 'forbidden', `a ${kind} cannot be rolled out: ${refused}`)];
  if (REVIEWS.test(kind))
    return [problem('kind', 'forbidden', `a ${kind} cannot be rolled out: it is a question, not a state`)];
  if (/(^|\.)sluice\.dev$/.test(kind))
    return [problem('kind', 'forbidden', 'objects of Sluice are published to Sluice itself, not through a cluster')];
  const { namespace, name } = object.metadata;
  const namespaced = isNamespaced(object);
  if (namespaced === false && namespace !== undefined)
    return [problem('metadata.namespace', 'forbidden', `a ${object.kind} is in no namespace: leave it out`)];
  if (namespaced === true && namespace === undefined)
    return [problem('metadata.namespace', 'required', `is required: a ${object.kind} is in a namespace`)];
  if (kind === 'ConfigMap' && namespace === APPLY_SET.namespace && name === APPLY_SET.name && !isOpen(name))
    return [problem('metadata.name', 'reserved-name', 'Sluice keeps the list of its objects there')];
  return [];
}

const REVIEWS = /^(\w+Review|TokenRequest)\.(authentication|authorization)\.k8s\.io$/;
const LISTS = /List$/;

/** A list of objects of a Kubernetes API. */
function KubeObjectList(): PropertyDecorator {
  const check: Check = (value, stage) => {
    if (!Array.isArray(value)) return [problem('', 'wrong-type', `must be a list, but is ${typeName(value)}`)];
    if (value.length === 0) return [problem('', 'empty', 'must not be empty')];
    if (value.length > MOST_OBJECTS)
      return [problem('', 'too-many', `must have at most ${MOST_OBJECTS} items, but has ${value.length}`)];
    return value.flatMap((item: unknown, i) =>
      objectProblems(item, stage).map((found) => ({ ...found, at: `[${i}]${below(found.at)}` })),
    );
  };
  return Checked('kubeObjectList', check, {
    type: 'array',
    minItems: 1,
    maxItems: MOST_OBJECTS,
    items: { type: 'object', required: ['apiVersion', 'kind', 'metadata'] },
  });
}

const below = (at: string): string => (at === '' ? '' : `.${at}`);

@About('Objects of Kubernetes clusters: whole manifests, which the cluster gets as they are.')
@Fields({
  objects:
    'The manifests, as kubectl applies them. Namespaces are applied first, then definitions, then the rest. Strings may contain templates such as `{{ node.name }}` and `{{ bindings.NAME }}`. No two fragments of a cluster may have the same object.',
  template: '`false`: the objects have no templates, and `{{` in them is literal. Default: true.',
  takeOver:
    '`true`: fields that other managers own are taken from them. Without it, such a change is refused, and the reason names the manager and the fields.',
  bindings: BINDINGS_ABOUT,
})
@NamedBindings()
export class KubeObjectsSpec extends NodeSpec {
  @KubeObjectList() readonly objects!: readonly KubeManifest[];
  @Optional() @Flag() readonly template?: boolean;
  @Optional() @Flag() readonly takeOver?: boolean;
  @Optional() @BindingList() readonly bindings?: readonly Binding[];
}

export const kubeObjects: Kind = {
  name: 'KubeObjects',
  spec: KubeObjectsSpec,
  role: 'state',
  claims: (spec) =>
    kubeObjectsOf(spec).flatMap((object) =>
      objectProblems(object, 'rendered').length === 0 ? [kubeObjectId(object)] : [],
    ),
  literal: ({ template }) => (template === false ? ['objects', 'bindings'] : ['bindings']),
};
