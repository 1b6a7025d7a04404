import type { Command } from 'commander';
import { applierCommand, HEARTBEAT_SECONDS } from '../../../services/applier/src/shell/options.js';
import { withTargets } from '../targets/target-options.js';
import type { GlobalFlags, Session } from '../connection/session.js';
import type { ExitCode } from '../output/exit.js';

/** Runs a command with the session that the common flags describe. Undefined: the process ends by itself. */
export type Run = (flags: GlobalFlags, command: (session: Session) => Promise<ExitCode | undefined>) => Promise<void>;

/** The code of a command, which is loaded when the command is called. Its arguments and flags follow the session. */
export type CommandLoader = () => Promise<(session: Session, ...args: never[]) => Promise<ExitCode | undefined>>;

/** The groups of commands are added to this. */
export interface Registry {
  readonly program: Command;
  action(load: CommandLoader): (...args: unknown[]) => Promise<void>;
}

/** Commands that run something on this machine. */
export function registerLocal({ program, action }: Registry): void {
  program.commandsGroup('On this machine:');
  program
    .command('up')
    .description(
      'run a whole fleet on this machine: nats-server, the services and local nodes; data survives a restart',
    )
    .option(
      '--nodes <n>',
      'the number of nodes (default: those of the last run, or 10). Nodes of the last run beyond this number stay in the fleet and turn silent',
    )
    .option('--inventory <file>', 'a JSON file with the nodes and their labels: {"nodes": [{"name", "labels"}]}')
    .option('--data <dir>', 'the data folder (default: $XDG_DATA_HOME/sluice)')
    .option('--port <port>', 'the port of nats-server; 0: any free port', '4222')
    .option(
      '--kube',
      'work with the cluster of the current kubeconfig: its Nodes, drains and custom resources; each Node gets an applier on this machine that only writes to the data folder',
    )
    .option('--keep-crds', 'with --kube: do not install or update the custom resource definitions')
    .action(action(async () => (await import('../commands/up.js')).up));
  program
    .command('demo')
    .description('watch a good change, then a bad change and its rollback, in a temporary folder; takes under a minute')
    .option(
      '--functions',
      'with four replicas of a network function instead of twelve nodes: one does not answer for a while, and one restarts',
    )
    .option(
      '--clusters',
      'with three Kubernetes clusters instead of twelve nodes: one never becomes ready, and somebody deletes an object. Builds kube-apiserver and etcd with Go, the first time for some minutes',
    )
    .option('--keep', 'keep the temporary folder with its files and logs')
    .action(action(async () => (await import('../commands/demo.js')).demo));
  program.addCommand(
    withTargets(applierCommand('applier').summary('run the applier of one node, or of many targets elsewhere'))
      .copyInheritedSettings(program)
      .configureHelp({ showGlobalOptions: false })
      .action(action(async () => (await import('../commands/appliers.js')).applier)),
  );
  program
    .command('service')
    .description('run one or more services in this process: merger, validator, scheduler, drain, inventory, gateway')
    .argument('<name...>', 'the services to run')
    .action(action(async () => (await import('../commands/service.js')).service));
  program
    .command('appliers', { hidden: true })
    .description('run the appliers of all nodes of an inventory; sluice up starts this')
    .requiredOption('--inventory <file>', 'the nodes and their labels')
    .requiredOption('--data <dir>', 'the folder for the files and the state of the nodes')
    .option('--shard <n/of>', 'run only this part of the nodes', '1/1')
    .option(
      '--systemctl <program>',
      'the program that reloads and restarts units; it runs in the root folder of the node (default: none)',
    )
    .addOption(HEARTBEAT_SECONDS)
    .action(action(async () => (await import('../commands/appliers.js')).appliers));
}

/** Commands about a change. */
export function registerChanges({ program, action }: Registry): void {
  program.commandsGroup('Changes:');
  publishing(program.command('apply').description('publish manifests as one change and print its ID')).action(
    action(async () => (await import('../commands/apply.js')).apply),
  );
  publishing(program.command('delete').description('publish a change that deletes fragments'))
    .argument('[kind]', 'the kind of the fragment: File, SystemdUnit, …')
    .argument('[name]', 'the name of the fragment')
    .action(action(async () => (await import('../commands/delete.js')).remove));
  paced(
    reading(program.command('plan').description('preview a change per pool and node, without publishing it')),
  ).action(action(async () => (await import('../commands/plan.js')).plan));
  reading(
    program
      .command('import')
      .description(
        'convert resources of the OpenShift Machine Config Operator, the das-schiff network operator or the SD-EWAN controller to fragments, offline; reports what it skips on stderr',
      ),
  ).action(action(async () => (await import('../commands/import.js')).importFragments));
  program
    .command('upload')
    .description('put a large or binary file into the object store, and print the contentFrom for a File')
    .argument('<file>', 'the file')
    .option('--name <name>', 'the name shown to people (default: the name of the file)')
    .action(action(async () => (await import('../commands/upload.js')).upload));
  program
    .command('actions')
    .description('show which actions a node needs to go from one set of fragments to another, and why; offline')
    .requiredOption('--from <file>', 'the fragments before the change')
    .requiredOption('--to <file>', 'the fragments after the change, with the policies that apply')
    .action(action(async () => (await import('../commands/actions.js')).actions));
  program
    .command('status')
    .description('show the fleet and its changes, or one change with its nodes')
    .argument('[change]', 'the ID of a change; without it, all changes')
    .option('-w, --watch', 'keep watching; with a change: until it ends, then exit with its outcome')
    .action(action(async () => (await import('../commands/status.js')).status));
  about('change', program.command('pause'))
    .description('pause a rollout: grant no more leases; nodes that have one finish')
    .action(action(async () => (await import('../commands/steer.js')).pause));
  about('change', program.command('resume'))
    .description('resume a paused rollout')
    .action(action(async () => (await import('../commands/steer.js')).resume));
  about('change', program.command('abort'))
    .description('end a rollout and roll back the nodes that changed')
    .action(action(async () => (await import('../commands/steer.js')).abort));
  waiting(program.command('retry').description('publish the content of a change again, as a new change'))
    .argument('<change>', 'the ID of a change')
    .action(action(async () => (await import('../commands/steer.js')).retry));
  waiting(
    program.command('rollback').description('undo a committed change: publish the state before it, as a new change'),
  )
    .argument('<change>', 'the ID of a committed change')
    .action(action(async () => (await import('../commands/steer.js')).rollback));
}

/** Commands about nodes and the whole fleet. */
export function registerFleet({ program, action }: Registry): void {
  program.commandsGroup('The fleet:');
  program
    .command('get')
    .description(
      'list resources, or show one: nodes, pools, fragments, changes, known-bad, leases, drift, objects, target-status, or disruption-policy NODE',
    )
    .argument(
      '<resource>',
      'nodes, pools, fragments, changes, known-bad, leases, drift, objects, target-status or disruption-policy',
    )
    .argument('[name]', 'the name, ID or hash of one resource; drift, disruption-policy: the node')
    .action(action(async () => (await import('../commands/get.js')).get));
  program
    .command('why')
    .description('explain what a node or a change is waiting for, or how it ended')
    .argument(
      '<node|change>',
      'the name of a node or the ID of a change; node/NAME if a node has the name of a change, such as node/c1',
    )
    .action(action(async () => (await import('../commands/why.js')).why));
  program
    .command('diff')
    .description(
      'compare a node, as last reported, and its active config with the committed config; or any two of its configs',
    )
    .argument('<node>', 'the name of a node')
    .option('--from <hash>', 'compare from this config (default: the active config)')
    .option('--to <hash>', 'compare to this config (default: the committed config)')
    .action(action(async () => (await import('../commands/diff.js')).diff));
  program
    .command('events')
    .description('print every event: those stored so far, then new ones as they arrive')
    .option('--since <time>', 'start at a duration ago (10m) or at a time (RFC 3339)')
    .option('--subject <subject>', 'only events with matching NATS subjects, such as node.lease.>')
    .option('--no-follow', 'exit after the last stored event')
    .action(action(async () => (await import('../commands/events.js')).events));
  about('node', program.command('skip'))
    .description('let a rollout continue without a node')
    .action(action(async () => (await import('../commands/steer.js')).skip));
  about('node', program.command('remove'))
    .description('remove a node that is gone for good')
    .option('--force', 'remove the node although it still reports')
    .action(action(async () => (await import('../commands/steer.js')).removeNode));
  program
    .command('label')
    .description(
      'set labels of a node, or remove labels that were set; they take precedence over those of the node itself and of Kubernetes',
    )
    .argument('<node>', 'the name of a node')
    .argument('<label...>', 'key=value to set a label, key- to remove one that was set')
    .action(action(async () => (await import('../commands/steer.js')).label));
  program
    .command('take')
    .description(
      'take a node out of service, for example for maintenance: it counts as unavailable in its pool and receives no changes until you give it back',
    )
    .argument('<node>', 'the name of a node')
    .requiredOption('--owner <name>', 'who takes it; only this owner can give it back')
    .option('--reason <text>', 'why; shown in the status of rollouts that wait for the node')
    .option('--for <duration>', 'give it back automatically after this time, such as 30m')
    .action(action(async () => (await import('../commands/steer.js')).take));
  program
    .command('give')
    .description('put a node back into service after sluice take')
    .argument('<node>', 'the name of a node')
    .requiredOption('--owner <name>', 'who took it')
    .action(action(async () => (await import('../commands/steer.js')).give));
  program
    .command('clear')
    .description('clear a known-bad config, so that it may be rolled out again')
    .argument('<hash>', 'the hash of the config, or its first 7 or more hex digits')
    .requiredOption('--reason <text>', 'why; kept in the history')
    .action(action(async () => (await import('../commands/steer.js')).clear));
  program
    .command('doctor')
    .description('check this installation, and say what is wrong and how to fix it')
    .action(action(async () => (await import('../commands/doctor.js')).doctor));
}

const SUBJECTS = { change: 'the ID of a change', node: 'the name of a node' } as const;

/** Commands about one change or node, which keep the reason in the history. */
const about = (subject: keyof typeof SUBJECTS, command: Command): Command =>
  command.argument(`<${subject}>`, SUBJECTS[subject]).option('--reason <text>', 'why; kept in the history');

const reading = (command: Command): Command =>
  command.option(
    '-f, --filename <path>',
    'a file, a folder, or - for stdin; can be repeated',
    (path: string, before: readonly string[] = []) => [...before, path],
  );

const waiting = (command: Command): Command =>
  command.option('--wait <timeout>', 'wait until the change ends, then exit with its outcome; without a value: 10m');

const checked = (command: Command): Command =>
  command
    .option('--strict', 'reject the change if there is a warning')
    .option('--take-over', 'allow fragments that belong to another source; they then belong to the source cli');

/** How to roll a change out. */
const paced = (command: Command): Command =>
  checked(command)
    .option('--max-failures <n>', 'how many nodes may fail before the change is rolled back (default: 0)')
    .option(
      '--max-unavailable <n|n%>',
      'how many nodes of the change may change at once, if that is fewer than the pools allow',
    )
    .option(
      '--needs-timeout <duration>',
      'how long the change may wait for what it refers to and does not exist yet (default: 24h)',
    );

const publishing = (command: Command): Command =>
  paced(waiting(reading(command).option('-m, --message <text>', 'describe the change')));
