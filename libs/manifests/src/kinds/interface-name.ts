import { patternForm, type TextForm } from '../shape/forms.js';

/** Linux' IFNAMSIZ, without the NUL at the end. */
const MAX_INTERFACE_NAME = 15;
/** Of a VRF: the names of its bridge and its tunnel are made of it, with three more characters. */
const MAX_VRF_NAME = 12;

/** Words that iproute2, FRR or the kernel take for something else. */
const RESERVED = '(?!(?:all|default|lo|none|\\.{1,2})$)';

/** The form of a name that an interface gets. */
export const NEW_INTERFACE: TextForm = nameForm('bad-interface', RESERVED, MAX_INTERFACE_NAME);
/** The form of the name of an interface that is there. */
export const INTERFACE: TextForm = nameForm('bad-interface', '(?!\\.{1,2}$)', MAX_INTERFACE_NAME);
/** The form of the name of a VRF. */
export const VRF_NAME: TextForm = nameForm('bad-vrf', RESERVED, MAX_VRF_NAME);

function nameForm(code: string, but: string, longest: number): TextForm {
  // A leading dash would be an option; what stands in front of a colon or an @ is cut off by tools.
  return patternForm(
    code,
    new RegExp(`^${but}[A-Za-z0-9_.][A-Za-z0-9_.-]{0,${longest - 1}}$`),
    `must be the name of an interface: at most ${longest} letters, digits, "_", "." and "-", and not a reserved word such as "default"`,
  );
}
