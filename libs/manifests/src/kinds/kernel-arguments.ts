import { About, Fields } from '../shape/description.js';
import { patternForm, TextList } from '../shape/forms.js';
import { SHORT_NAME } from '../fragment-name.js';
import { NodeSpec, type Kind } from './kind.js';

/** One argument, without characters that the shell of a boot loader could split or expand. */
export const KERNEL_ARGUMENT = patternForm(
  'bad-argument',
  /^(?=.{1,500}$)[A-Za-z0-9_][A-Za-z0-9_.,:;/=+@%~^-]*$/,
  'must be one kernel argument without spaces or quotes, such as "nosmt" or "hugepages=64"',
);

/** Arguments for the kernel, in addition to the existing ones. */
@About('Arguments added to the kernel command line. A change drains and restarts the node.')
@Fields({
  arguments:
    'Arguments to add to those that the machine has, one per item, such as `nosmt` or `hugepages=64`. Several objects may add arguments to one node.',
})
export class KernelArgumentsSpec extends NodeSpec {
  @TextList(KERNEL_ARGUMENT, 1) readonly arguments!: readonly string[];
}

export const kernelArguments: Kind = {
  name: 'KernelArguments',
  spec: KernelArgumentsSpec,
  role: 'state',
  // GRUB reads them from a file with this name.
  nameForm: SHORT_NAME,
};
