import { patternForm, type TextForm } from '../shape/forms.js';

/** Linux's IFNAMSIZ, without the terminating NUL. */
const MAX_INTERFACE_NAME = 15;
/** For a VRF: the names of its bridge and its tunnel have three more characters. */
const MAX_VRF_NAME = 12;

/** Words that have another meaning for iproute2, FRR or the kernel. */
const RESERVED = '(?!(?:all|default|lo|none|\\.{1,2})$)';

/** The form of the name of a new interface. */
export const NEW_INTERFACE: TextForm = nameForm('bad-interface', RESERVED, MAX_INTERFACE_NAME);
/** The form of the name of an existing interface. */
export const INTERFACE: TextForm = nameForm('bad-interface', '(?!\\.{1,2}$)', MAX_INTERFACE_NAME);
/** The form of the name of a VRF. */
export const VRF_NAME: TextForm = nameForm('bad-vrf', RESERVED, MAX_VRF_NAME);

function nameForm(code: string, but: string, longest: number): TextForm {
  // A leading dash would make it an option. Tools cut off what is before a colon or an @.
  return patternForm(
    code,
    new RegExp(`^${but}[A-Za-z0-9_.][A-Za-z0-9_.-]{0,${longest - 1}}$`),
    `must be the name of an interface: at most ${longest} letters, digits, "_", "." and "-", and not a reserved word such as "default"`,
  );
}
