import { argvOf } from '../argv.js';
import { runCommand } from '../command.js';
import { Refused } from '../ports.js';
import type { ProbeType } from './probe-type.js';

/** `exec {argv}`: a command ends with 0. Without a shell, and only where the node's settings allow commands. */
export const execProbe: ProbeType = {
  field: 'exec',
  check: (spec, { allowExec }) => {
    if (!allowExec) throw new Refused('node', 'the settings of this node do not allow commands');
    argvOf(spec, 'exec');
  },
  tryOnce: async (spec, { root, allowExec, ending }, timeoutMs) => {
    if (!allowExec) return 'the settings of this node do not allow commands';
    const { passed, reason } = await runCommand(argvOf(spec, 'exec'), { root, timeoutMs, ending });
    return passed ? undefined : reason;
  },
};
