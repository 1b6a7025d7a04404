import { patternForm } from './shape/forms.js';

const PART = '[A-Za-z0-9_:@-]+(/[A-Za-z0-9_:@-]+)*';

/** The form of a kernel parameter's name. In a part of it a slash stands for a dot, as in `net.ipv4.conf.eth0/100.rp_filter`. */
export const SYSCTL_KEY = patternForm(
  'bad-sysctl',
  new RegExp(`^(?=.{1,255}$)${PART}(\\.${PART})+$`),
  'must be the name of a kernel parameter with dots, as in "vm.swappiness"',
);

/** The form of a kernel parameter, or of the beginning of some, in a rule. */
export const SYSCTL_PREFIX = patternForm(
  'bad-sysctl',
  new RegExp(`^(?=.{1,255}$)${PART}(\\.${PART})*$`),
  'must be the name of a kernel parameter or its beginning up to a dot, as in "net.ipv4"',
);
