import { InvalidArgumentError, Option, type Command } from 'commander';

const GROUP = 'Targets elsewhere:';
const MOST_CHECK_SECONDS = 3_600;

/** What the applier of one machine does not have. It is loaded with every command, so it imports nothing heavy. */
const OPTIONS: readonly Option[] = [
  new Option(
    '--targets <what>',
    'serve targets that cannot run an applier themselves, instead of this machine. Several copies share them',
  ).choices(['functions', 'clusters', 'fleets']),
  new Option('--inventory <file>', 'with --targets: a YAML file that lists them. It is read again when it changes'),
  new Option(
    '--pods',
    'with --targets functions: find the replicas in Kubernetes, by the labels of their pods, instead of in a file',
  ),
  new Option(
    '--hub',
    'with --targets clusters: find the clusters on a hub, which has their Cluster API objects or Secrets with kubeconfigs',
  ),
  new Option(
    '--kubeconfig <file>',
    'with --pods or --hub: the kubeconfig (default: the one that kubectl uses, or the service account of the pod)',
  ),
  new Option('--kube-context <name>', 'with --pods or --hub: the context of the kubeconfig (default: its current one)'),
  new Option('--namespace <name>', 'with --pods or --hub: only this namespace (default: all)'),
  new Option(
    '--selector <labels>',
    'with --pods: only pods with these labels, as kubectl writes them (default: sdewanPurpose)',
  ),
  new Option('--check-seconds <seconds>', 'with --targets: how often to ask each of them whether it answers')
    .default(30)
    .argParser(secondsOf),
];

/** Adds the options of appliers that serve targets elsewhere. */
export function withTargets(command: Command): Command {
  for (const option of OPTIONS) command.addOption(option.helpGroup(GROUP));
  return command;
}

function secondsOf(text: string): number {
  const seconds = Number(text);
  if (seconds >= 1 && seconds <= MOST_CHECK_SECONDS) return seconds;
  throw new InvalidArgumentError(`It must be a number from 1 to ${MOST_CHECK_SECONDS}.`);
}
