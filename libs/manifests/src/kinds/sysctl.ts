import { Text } from '../shape/forms.js';
import { SYSCTL_KEY } from '../sysctl-key.js';
import { SelectingSpec, type Kind } from './kind.js';

/** The value of a kernel parameter: one line. */
const VALUE = {
  code: 'bad-value',
  problem: (text: string) =>
    text.trim() === ''
      ? 'must not be empty'
      : /[\n\r\0]/.test(text)
        ? 'must be one line'
        : text.length > 4_000
          ? 'must not be longer than 4000 characters'
          : undefined,
  schema: { minLength: 1, maxLength: 4_000, pattern: '^[^\\n\\r\\u0000]*[^\\s][^\\n\\r\\u0000]*$' },
};

/** A kernel parameter with a value, now and after each boot. */
export class SysctlSpec extends SelectingSpec {
  @Text(SYSCTL_KEY) readonly key!: string;
  @Text(VALUE) readonly value!: string;
}

export const sysctl: Kind = {
  name: 'Sysctl',
  spec: SysctlSpec,
  role: 'state',
  ownsPath: false,
  reservedNames: [],
  claims: ({ key }) => (typeof key === 'string' ? [`sysctl ${key}`] : []),
};
