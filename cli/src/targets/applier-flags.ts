import type { Command } from 'commander';
import { UsageError } from '../output/exit.js';

/** What only the applier of a machine has. */
const OF_MACHINES = [
  'node',
  'label',
  'root',
  'fresh',
  'allowExec',
  'allowSetuid',
  'probeNetwork',
  'netns',
  'reach',
  'systemctl',
  'systemdAnalyze',
  'rebootCommand',
  'proc',
  'updateGrub',
];
/** What only the applier of targets has. */
const OF_TARGETS = ['inventory', 'checkSeconds', 'pods', 'hub', 'kubeconfig', 'kubeContext', 'namespace', 'selector'];

/** Refuses flags of `sluice applier` that would be ignored. Variables may be set for other programs. */
export function refuseIgnoredFlags(command: Command, targets: string | undefined): void {
  const ignored = targets === undefined ? OF_TARGETS : OF_MACHINES;
  const given = command.options.find(
    (option) =>
      ignored.includes(option.attributeName()) && command.getOptionValueSource(option.attributeName()) === 'cli',
  )?.long;
  if (given === undefined) return;
  throw new UsageError(
    targets === undefined
      ? `${given} is only for targets elsewhere: add --targets WHAT, or leave it out`
      : `${given} is for the applier of one machine, and --targets ${targets} serves many targets: leave it out`,
  );
}
