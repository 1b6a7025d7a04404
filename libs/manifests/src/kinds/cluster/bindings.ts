import { ExactlyOne, Nested, NestedList, Optional, Ruled, type Class, type Problem } from '../../shape/checked.js';
import { About, Fields } from '../../shape/description.js';
import { LABEL_KEY_FORM, patternForm, Text, Word, type TextForm } from '../../shape/forms.js';
import { isObject } from '../../shape/reader.js';
import { utf8Bytes } from '../../json-form.js';
import { BINDING_NAME } from '../../template.js';
import type { Kind, SelectingSpec } from '../kind.js';
import { BOUND_VALUES, MOST_BOUND_VALUES, MOST_VALUE_BYTES } from './bound-value.js';
import { fieldSteps } from './field-path.js';
import { KUBE_API_VERSION, KUBE_KIND, KUBE_NAME, KUBE_NAMESPACE } from './kube-forms.js';

const MOST_BINDINGS = 32;

const literal = (form: TextForm): TextForm => ({ ...form, anyway: form.problem });

const NAME = literal(
  patternForm('bad-name', BINDING_NAME, 'must be letters, digits and "_", not starting with a digit: "REGION"'),
);
const FIELD_PATH: TextForm = literal({
  code: 'bad-field-path',
  problem: (text) =>
    text.length <= 253 && fieldSteps(text) !== undefined
      ? undefined
      : "must be the path of a field, such as data.region, metadata.labels['example.com/zone'] or status.addresses[0].ip",
  schema: { maxLength: 253 },
});
const VALUE: TextForm = literal({
  code: 'too-large',
  problem: (text) =>
    utf8Bytes(text) <= MOST_VALUE_BYTES ? undefined : `must have at most ${MOST_VALUE_BYTES} bytes of UTF-8`,
  schema: { maxLength: MOST_VALUE_BYTES },
});

const FROM = ['cluster', 'hub'] as const;

const NO_SECRET =
  'a Secret cannot be bound: values of bindings are plain text in the ledger and in the views. Name the Secret where it is used, as in the secret fields of FluxSync, or let an operator such as External Secrets create it in each cluster';

/** Values are recorded as plain text, which many may read who must not read Secrets. */
const NoSecret = Ruled({
  problems: ({ kind }) => (kind === 'Secret' ? [{ at: 'kind', code: 'forbidden', message: NO_SECRET }] : []),
  schema: { properties: { kind: { not: { enum: ['Secret'] } } } },
});
@NoSecret
@Fields({
  from: '`cluster`: the object is in the cluster that gets the fragment. `hub`: it is on the hub that lists the cluster, for an applier with `--hub`. Default: `cluster`.',
  apiVersion: 'The API of the object, such as `v1`.',
  kind: 'The kind of the object, such as `ConfigMap`. Not `Secret`.',
  namespace: 'The namespace of the object, if it is in one. It may contain templates of the node.',
  name: 'The name of the object. It may contain templates of the node, such as `{{ node.name }}`.',
  fieldPath:
    "The field, such as `data.region`, `metadata.labels['example.com/zone']` or `status.addresses[0].ip`. It must be a string, a number, true or false.",
})
export class BoundObject {
  @Optional() @Word(FROM) readonly from?: string;
  @Text(KUBE_API_VERSION) readonly apiVersion!: string;
  @Text(KUBE_KIND) readonly kind!: string;
  @Optional() @Text(KUBE_NAMESPACE) readonly namespace?: string;
  @Text(KUBE_NAME) readonly name!: string;
  @Text(FIELD_PATH) readonly fieldPath!: string;
}

@ExactlyOne('label', 'object')
@Fields({
  name: 'What templates call it: `{{ bindings.NAME }}`.',
  label: 'The key of a label of the node.',
  object: 'A field of an object.',
  default:
    'The value while the node has no such label, or the object or its field does not exist or cannot be used. Without it, the node waits.',
})
export class Binding {
  @Text(NAME) readonly name!: string;
  @Optional() @Text(literal(LABEL_KEY_FORM)) readonly label?: string;
  @Optional() @Nested(() => BoundObject) readonly object?: BoundObject;
  @Optional() @Text(VALUE) readonly default?: string;
}

/** The description of the field for those kinds that have it. */
export const BINDINGS_ABOUT =
  'Values for `{{ bindings.NAME }}` in the texts of this fragment: from labels of the node, or from fields of objects that the applier reads and watches. A new value is rolled out like any other change.';

/** A list of bindings with different names. */
export const BindingList = (): PropertyDecorator => NestedList(() => Binding, MOST_BINDINGS);

/** The decorated class has bindings with different names. */
export const NamedBindings = (): ClassDecorator =>
  Ruled({
    problems: ({ bindings }) => duplicateNames(bindings),
    // The same in CEL would cost too much for an API server.
    schema: {},
  });

function duplicateNames(bindings: unknown): readonly Problem[] {
  if (!Array.isArray(bindings)) return [];
  const names = bindings.map((one: unknown) => (isObject(one) ? one['name'] : undefined));
  return names.flatMap((name, i) =>
    name !== undefined && names.indexOf(name) < i
      ? [
          {
            at: `bindings[${i}].name`,
            code: 'duplicate',
            message: `there is a binding ${String(name)} already: each needs a name of its own`,
          },
        ]
      : [],
  );
}

/** The bindings of a fragment that was checked; none for kinds that have no bindings. */
export const bindingsIn = ({ spec }: { readonly spec?: unknown }): readonly Binding[] => {
  const bindings: unknown = isObject(spec) ? spec['bindings'] : undefined;
  return Array.isArray(bindings) ? (bindings as readonly Binding[]) : [];
};

@NoSecret
@ExactlyOne('value', 'missing')
@Fields({
  from: '`cluster` or `hub`, as in the binding.',
  apiVersion: 'The API of the object.',
  kind: 'The kind of the object.',
  namespace: 'The namespace of the object, if it is in one.',
  name: 'The name of the object.',
  fieldPath: 'The field.',
  value: 'Its value, as a text.',
  missing: 'Why it has no value that can be used.',
})
export class BoundValueSpec {
  @Word(FROM) readonly from!: string;
  @Text(KUBE_API_VERSION) readonly apiVersion!: string;
  @Text(KUBE_KIND) readonly kind!: string;
  @Optional() @Text(KUBE_NAMESPACE) readonly namespace?: string;
  @Text(KUBE_NAME) readonly name!: string;
  @Text(FIELD_PATH) readonly fieldPath!: string;
  @Optional() @Text(VALUE) readonly value?: string;
  @Optional() @Text(VALUE) readonly missing?: string;
}

@About(
  'The values of the bindings of a node, whose name is the name of the object. Sluice publishes it for every node whose fragments have bindings to objects, when the applier has read these. To set values by hand, publish it from a source of your own: Sluice then leaves it alone.',
)
@Fields({
  values: 'What was read, one value per field.',
  after: 'The change that this one replaces, if Sluice published both. It is refused if there is another one since.',
})
export class BoundValuesSpec {
  @NestedList(() => BoundValueSpec, MOST_BOUND_VALUES) readonly values!: readonly BoundValueSpec[];
  @Optional()
  @Text(patternForm('bad-change', /^c[1-9][0-9]{0,15}$/, 'must be the id of a change, such as "c12"'))
  readonly after?: string;
}

/** It selects no nodes: it is for the node with its name. */
export const boundValues: Kind = {
  name: BOUND_VALUES,
  spec: BoundValuesSpec as unknown as Class<SelectingSpec>,
  role: 'input',
};
