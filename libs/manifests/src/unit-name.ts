import { patternForm } from './shape/forms.js';

/** The form of a unit in an action or a rule. A leading dash would be an option of systemctl. */
export const UNIT = patternForm(
  'bad-unit',
  /^[A-Za-z0-9:_.\\@][A-Za-z0-9:_.\\@-]{0,254}$/,
  'must be the name of a systemd unit, such as "frr.service"',
);

/** The form of a unit that a fragment creates: with its suffix, and no template without an instance. */
export const WHOLE_UNIT = patternForm(
  'bad-unit',
  /^(?=.{1,255}$)[A-Za-z0-9:_.\\@][A-Za-z0-9:_.\\@-]*\.(service|socket|timer|path|mount|automount|swap|target|slice)$/,
  'must be the full name of a systemd unit, such as "frr.service" or "data.mount"',
);

/** The form of a drop-in: one file name. */
export const DROP_IN = patternForm(
  'bad-drop-in',
  /^(?=.{1,255}$)[A-Za-z0-9_@][A-Za-z0-9:_.@-]*\.conf$/,
  'must be a file name that ends with .conf, such as "10-limits.conf"',
);

/** The folder of an administrator's units. */
export const UNIT_FOLDER = '/etc/systemd/system';
