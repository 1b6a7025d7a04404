import type { ApplierFlags } from '../commands/applier.js';
import type { AppliersFlags } from '../commands/appliers.js';
import type { UpFlags } from '../commands/up.js';
import type { Registry } from './registry.js';
import { collect } from './flags.js';

/** Commands that run something on this machine. */
export function registerLocal({ program, action }: Registry): void {
  program.commandsGroup('On this machine:');
  program
    .command('up')
    .description('run everything here: nats-server, the services, and local nodes; data survives a restart')
    .option('--nodes <n>', 'how many nodes (default: 10, or those of the last time)')
    .option('--inventory <file>', 'the nodes with their labels: {"nodes": [{"name", "labels"}]}')
    .option('--data <dir>', 'where everything is kept (default: $XDG_DATA_HOME/sluice)')
    .option('--port <port>', 'of nats-server; 0 for a free one', '4222')
    .option(
      '--kube',
      'with the Kubernetes of the current kubeconfig: its Nodes (each with an applier here, whose files stay in the data folder), drains of them, and custom resources',
      false,
    )
    .option('--keep-crds', 'with --kube: leave the definitions of the custom resources as they are', false)
    .action(action(async (session, flags: UpFlags) => (await import('../commands/up.js')).up(session, flags)));
  program
    .command('demo')
    .description('see a good change, a bad one, its way back, and its refusal, in a temporary folder')
    .option('--keep', 'keep the folder with its files and logs')
    .action(
      action(async (session, flags: { keep?: boolean }) => (await import('../commands/demo.js')).demo(session, flags)),
    );
  program
    .command('applier')
    .description('be the applier of one node')
    .requiredOption('--node <name>', 'the name of the node')
    .option('--label <key=value>', 'a label of the node; may be repeated', collect, [])
    .option('--root <dir>', 'where its files are', '/')
    .option('--state <dir>', 'where its journal is (default: /var/lib/sluice/<node>)')
    .option('--fresh', 'nothing on the node serves yet: its first config needs no budget', false)
    .option(
      '--netns <name>',
      'the network namespace in which its network is set up (default: that of the machine, unless --root names a folder)',
    )
    .option(
      '--reach <host:port>',
      'what must still be reached after a change of the network, beside the bus, the gateway and the name server; may be repeated',
      collect,
      [],
    )
    .option('--allow-exec', 'allow fragments and probes that run commands', false)
    .option(
      '--systemctl <program>',
      'what reloads and restarts units (default: systemctl, where the root is / and systemd runs)',
    )
    .option(
      '--systemd-analyze <program>',
      'what says whether a unit parses (default: systemd-analyze, where the root is /)',
    )
    .option('--reboot-command <command>', 'what restarts the machine (default: systemctl reboot); empty: nothing may')
    .option(
      '--proc <dir>',
      'where the kernel shows its parameters and its command line (default: /proc, where the root is /)',
    )
    .option(
      '--update-grub <command>',
      'what makes grub.cfg (default: update-grub, where the root is / and there is one)',
    )
    .action(
      action(async (session, flags: ApplierFlags) => (await import('../commands/applier.js')).applier(session, flags)),
    );
  program
    .command('service')
    .description(
      'be services: merger, validator, scheduler, drain, inventory, gateway; several in one process read the ledger once',
    )
    .argument('<name...>')
    .action(
      action(async (session, names: string[]) => (await import('../commands/service.js')).service(session, names)),
    );
  program
    .command('appliers', { hidden: true })
    .description('be the appliers of all nodes of an inventory; sluice up starts this')
    .requiredOption('--inventory <file>')
    .requiredOption('--data <dir>')
    .option('--shard <n/of>', 'only this part of the nodes', '1/1')
    .option(
      '--systemctl <program>',
      'what reloads and restarts units of these nodes, run in the root of the one that is meant (default: nothing does)',
    )
    .action(
      action(async (session, flags: AppliersFlags) =>
        (await import('../commands/appliers.js')).appliers(session, flags),
      ),
    );
}
