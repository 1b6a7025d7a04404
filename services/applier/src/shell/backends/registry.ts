import type { BackendFactory } from '../ports.js';
import { directoryBackend } from './directory/directory-backend.js';
import { execBackend } from './exec/exec-backend.js';
import { fileBackend } from './file/file-backend.js';
import { kernelArgumentsBackend } from './kernel-arguments/kernel-arguments-backend.js';
import { sshKeysBackend } from './ssh-keys/ssh-keys-backend.js';
import { sysctlBackend } from './sysctl/sysctl-backend.js';
import { systemdUnitBackend } from './systemd-unit/systemd-unit-backend.js';

/** Every kind of fragment that this applier can carry out, in the order in which they are applied. */
export const BACKENDS: readonly BackendFactory[] = [
  directoryBackend,
  fileBackend,
  sshKeysBackend,
  sysctlBackend,
  systemdUnitBackend,
  kernelArgumentsBackend,
  execBackend,
];
