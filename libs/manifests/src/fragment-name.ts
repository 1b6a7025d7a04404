import { isDnsLabel, isDnsSubdomain } from '#libs/contracts';
import type { TextForm } from './shape/forms.js';

const LABEL = '[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?';

/** The form of a fragment name, the same as for objects in Kubernetes. */
export const FRAGMENT_NAME: TextForm = {
  code: 'bad-name',
  problem: (text) =>
    isDnsSubdomain(text)
      ? undefined
      : 'must be a DNS subdomain: at most 253 characters of a-z, 0-9, "-" and ".", starting and ending with a letter or digit, and with at most 63 characters between two dots',
  schema: { maxLength: 253, pattern: `^${LABEL}(\\.${LABEL})*$` },
};

/** The form of a name that is also a token of subjects, or a part of file names. */
export const SHORT_NAME: TextForm = {
  code: 'bad-name',
  problem: (text) =>
    isDnsLabel(text)
      ? undefined
      : 'must be a DNS label: at most 63 characters of a-z, 0-9 and "-", not starting or ending with "-"',
  schema: { maxLength: 63, pattern: `^${LABEL}$` },
};
