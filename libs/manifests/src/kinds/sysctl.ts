import { About, Fields } from '../shape/description.js';
import { patternForm, Text } from '../shape/forms.js';
import { NodeSpec, type Kind } from './kind.js';

const PART = '[A-Za-z0-9_:@-]+(/[A-Za-z0-9_:@-]+)*';

/**
 * The form of a kernel parameter's name. Within a segment, a slash replaces a dot, as in
 * `net.ipv4.conf.eth0/100.rp_filter`.
 */
const SYSCTL_KEY = patternForm(
  'bad-sysctl',
  new RegExp(`^(?=.{1,255}$)${PART}(\\.${PART})+$`),
  'must be the name of a kernel parameter with dots, such as "vm.swappiness"',
);

/** The form of a kernel parameter or of a prefix in a rule. */
export const SYSCTL_PREFIX = patternForm(
  'bad-sysctl',
  new RegExp(`^(?=.{1,255}$)${PART}(\\.${PART})*$`),
  'must be the name of a kernel parameter, or the start of one up to a dot, such as "net.ipv4"',
);

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

/** A kernel parameter and its value, set now and after each boot. */
@About('A kernel parameter, set now and after each boot.')
@Fields({
  key: 'Name of the parameter, such as `vm.swappiness`. A slash stands for a dot inside a part: `net.ipv4.conf.eth0/100.rp_filter`.',
  value: 'Its value in quotes, on one line of at most 4,000 characters.',
})
export class SysctlSpec extends NodeSpec {
  @Text(SYSCTL_KEY) readonly key!: string;
  @Text(VALUE) readonly value!: string;
}

export const sysctl: Kind = {
  name: 'Sysctl',
  spec: SysctlSpec,
  role: 'state',
  claims: ({ key }) => (typeof key === 'string' ? [`sysctl ${key}`] : []),
};
