import type { BackendFactory } from '../ports.js';
import { directoryBackend, fileBackend, linkBackend } from './paths/path-backends.js';
import { execBackend } from './exec-backend.js';
import { kernelArgumentsBackend } from './kernel-arguments/kernel-arguments-backend.js';
import { sshKeysBackend } from './ssh-keys/ssh-keys-backend.js';
import { sysctlBackend } from './sysctl/sysctl-backend.js';
import { systemdUnitBackend } from './systemd-unit/systemd-unit-backend.js';

/** Every kind of fragment that this applier can apply, in the order in which they are applied. */
export const BACKENDS: readonly BackendFactory[] = [
  directoryBackend,
  fileBackend,
  linkBackend,
  sshKeysBackend,
  sysctlBackend,
  systemdUnitBackend,
  kernelArgumentsBackend,
  execBackend,
];
