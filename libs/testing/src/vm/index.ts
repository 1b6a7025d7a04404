export { findVmImage, restoreVm, type VmImage } from './image.js';
export { HOST_IN_GUEST, VirtualMachine } from './machine.js';
export type { GuestResult } from './guest-agent.js';
export { whyNoVm } from './why-no-vm.js';
