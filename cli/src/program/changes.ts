import type { Command } from 'commander';
import type { Registry } from './registry.js';
import { collect } from './flags.js';

interface PublishFlags {
  readonly filename: readonly string[];
  readonly message?: string;
  readonly maxFailures?: string;
  readonly wait?: string;
}
interface SteerFlags {
  readonly reason?: string;
  readonly wait?: string;
}

/** Commands about a change. */
export function registerChanges({ program, action }: Registry): void {
  program.commandsGroup('Changes:');
  publishing(program.command('apply').description('publish manifests as one change; prints its id')).action(
    action(async (session, flags: PublishFlags) => (await import('../commands/apply.js')).apply(session, flags)),
  );
  publishing(
    program
      .command('delete')
      .description('publish a change that takes fragments away')
      .argument('[kind]')
      .argument('[name]'),
  ).action(
    action(async (session, kind: string | undefined, name: string | undefined, flags: PublishFlags) =>
      (await import('../commands/delete.js')).remove(session, kind, name, flags),
    ),
  );
  program
    .command('plan')
    .description('what would happen, per pool and node; changes nothing')
    .option('-f, --filename <path>', 'a file, a folder, or - for stdin; may be repeated', collect, [])
    .action(action(async (session, flags: PublishFlags) => (await import('../commands/plan.js')).plan(session, flags)));
  program
    .command('import')
    .description(
      'offline: the fragments that resources of MCO or of the das-schiff network operator come to; says what has no equivalent',
    )
    .option('-f, --filename <path>', 'a file, a folder, or - for stdin; may be repeated', collect, [])
    .action(
      action(async (session, flags: PublishFlags) =>
        (await import('../commands/import.js')).importFragments(session, flags),
      ),
    );
  program
    .command('actions')
    .description('offline: the actions that going from one set of fragments to the other needs, and why')
    .requiredOption('--from <file>', 'the fragments before')
    .requiredOption('--to <file>', 'the fragments after, and the policies that hold')
    .action(
      action(async (session, flags: { from: string; to: string }) =>
        (await import('../commands/actions.js')).actions(session, flags),
      ),
    );
  program
    .command('status')
    .description('where the changes stand, or one of them with its nodes; with -w exits as it ends')
    .argument('[change]')
    .option('-w, --watch', 'follow it')
    .action(
      action(async (session, change: string | undefined, flags: { watch?: boolean }) =>
        (await import('../commands/status.js')).status(session, change, flags),
      ),
    );
  const verbs = {
    pause: 'grant no more nodes; those under way finish',
    resume: 'go on after a pause',
    abort: 'end it, and take back what it did',
  } as const;
  for (const verb of ['pause', 'resume', 'abort'] as const) {
    program
      .command(verb)
      .description(verbs[verb])
      .argument('<change>')
      .option('--reason <text>', 'is recorded')
      .action(
        action(async (session, change: string, flags: SteerFlags) =>
          (await import('../commands/steer.js')).steerRollout(session, verb, change, flags),
        ),
      );
  }
  waiting(
    program.command('retry').description('publish the same content again, as a new change').argument('<change>'),
  ).action(
    action(async (session, change: string, flags: SteerFlags) =>
      (await import('../commands/steer.js')).retry(session, change, flags),
    ),
  );
}

const waiting = (command: Command): Command => command.option('--wait <timeout>', 'wait for its end; alone: 10m');

function publishing(command: Command): Command {
  return waiting(
    command
      .option('-f, --filename <path>', 'a file, a folder, or - for stdin; may be repeated', collect, [])
      .option('-m, --message <text>', 'why, for people')
      .option('--max-failures <n>', 'so many nodes may fail before all goes back; 0 unless said'),
  );
}
