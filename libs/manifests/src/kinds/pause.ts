import { DNS_LABEL } from '#libs/contracts';
import { Fields } from '../shape/description.js';
import { Optional } from '../shape/checked.js';
import { patternForm, Text, TextList } from '../shape/forms.js';

const API_VERSION = patternForm(
  'bad-api-version',
  /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/)?v[0-9]{1,4}((alpha|beta)[0-9]{1,4})?$/,
  'must be the version of an API, such as "machineconfiguration.openshift.io/v1"',
);
const KIND = patternForm(
  'bad-kind',
  /^[A-Z][A-Za-z0-9]{0,62}$/,
  'must be the name of a kind, such as MachineConfigPool',
);
const NAMESPACE = patternForm('bad-namespace', DNS_LABEL, 'must be the name of a namespace');
const OBJECT_NAME = patternForm(
  'bad-object-name',
  /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/,
  'must be the name of an object: lower-case letters, digits, - and .',
);
const CONDITION = patternForm('bad-condition', /^[A-Za-z]([-A-Za-z0-9_.]{0,62})$/, 'must be the type of a condition');

/** An object that is paused, by its field `spec.paused`, while nodes of the pool are being drained. */
@Fields({
  apiVersion: 'Version of its API, such as `machineconfiguration.openshift.io/v1`.',
  kind: 'Its kind, such as `MachineConfigPool`.',
  name: 'Its name.',
  namespace: 'Its namespace. Leave it out for a cluster-scoped object.',
  waitWhile:
    'Types of conditions: while one of them is True, the object is not paused, and the drain waits. Default: `[Updating]`.',
})
export class PauseSpec {
  @Text(API_VERSION) readonly apiVersion!: string;
  @Text(KIND) readonly kind!: string;
  @Text(OBJECT_NAME) readonly name!: string;
  @Optional() @Text(NAMESPACE) readonly namespace?: string;
  @Optional() @TextList(CONDITION) readonly waitWhile?: readonly string[];
}
