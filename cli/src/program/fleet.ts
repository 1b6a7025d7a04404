import type { Registry } from './registry.js';

interface ReasonFlags {
  readonly reason?: string;
}

interface OwnerFlags extends ReasonFlags {
  readonly owner: string;
}

/** Commands about nodes and the fleet as a whole. */
export function registerFleet({ program, action }: Registry): void {
  program.commandsGroup('The fleet:');
  program
    .command('get')
    .description(
      'list nodes, pools, fragments, changes, known-bad or leases; disruption-policy NODE: what a change needs there, and by which rule',
    )
    .argument('<what>')
    .argument('[name]')
    .action(
      action(async (session, what: string, name: string | undefined) =>
        (await import('../commands/get.js')).get(session, what, name),
      ),
    );
  program
    .command('why')
    .description('the one reason why a node or a change waits, or what became of it')
    .argument('<node|change>')
    .action(action(async (session, subject: string) => (await import('../commands/why.js')).why(session, subject)));
  program
    .command('diff')
    .description('what a node has and what it shall have, or two of its configs')
    .argument('<node>')
    .option('--from <hash>', 'default: the config in force')
    .option('--to <hash>', 'default: the committed config')
    .action(
      action(async (session, node: string, flags: { from?: string; to?: string }) =>
        (await import('../commands/diff.js')).diff(session, node, flags),
      ),
    );
  program
    .command('events')
    .description('every message of the system: what there was, then what comes')
    .option('--since <time>', 'from then on: a duration (10m) or a time (RFC 3339)')
    .option('--subject <subject>', 'only these, as NATS filters them: node.lease.>')
    .option('--no-follow', 'end at the last one there is')
    .action(
      action(async (session, flags: { since?: string; subject?: string; follow: boolean }) =>
        (await import('../commands/events.js')).events(session, flags),
      ),
    );
  program
    .command('skip')
    .description('let a rollout go on without a node')
    .argument('<node>')
    .option('--reason <text>', 'is recorded')
    .action(
      action(async (session, node: string, flags: ReasonFlags) =>
        (await import('../commands/steer.js')).skip(session, node, flags),
      ),
    );
  program
    .command('remove')
    .description('a node has left for good')
    .argument('<node>')
    .option('--reason <text>', 'is recorded')
    .action(
      action(async (session, node: string, flags: ReasonFlags) =>
        (await import('../commands/steer.js')).removeNode(session, node, flags),
      ),
    );
  program
    .command('take')
    .description(
      'have a node out of service for something else: it takes a unit of its pool, and gets nothing until it is given back',
    )
    .argument('<node>')
    .requiredOption('--owner <name>', 'who has it: only they give it back')
    .option('--reason <text>', 'is recorded, and shown wherever a node waits for the unit')
    .option('--for <duration>', 'it is given back by itself after this: 30m')
    .action(
      action(async (session, node: string, flags: OwnerFlags & { readonly for?: string }) =>
        (await import('../commands/steer.js')).take(session, node, flags),
      ),
    );
  program
    .command('give')
    .description('put a node back into service that was taken')
    .argument('<node>')
    .requiredOption('--owner <name>', 'who had taken it')
    .action(
      action(async (session, node: string, flags: OwnerFlags) =>
        (await import('../commands/steer.js')).give(session, node, flags),
      ),
    );
  program
    .command('forgive')
    .description('allow a config again that was condemned')
    .argument('<hash>')
    .requiredOption('--reason <text>', 'is recorded')
    .action(
      action(async (session, hash: string, flags: ReasonFlags) =>
        (await import('../commands/steer.js')).forgive(session, hash, flags),
      ),
    );
  program
    .command('doctor')
    .description('what is wrong with this installation, and what to do about it')
    .action(action(async (session) => (await import('../commands/doctor.js')).doctor(session)));
}
