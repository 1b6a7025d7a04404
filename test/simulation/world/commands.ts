import type { ConfigEntry } from '#libs/contracts';
import {
  UNNEEDED,
  type Difference,
  type Item,
  type Outcomes,
  type Refusal,
} from '../../../services/applier/src/core/index.js';

/** What commands of an `Exec` do on a machine of this world. The second argument is what they leave there. */
type Program =
  /** The check: whether it is there. */
  | 'has'
  | 'put'
  /** It does its work, and then fails on this node. */
  | 'put-and-fail'
  /** There is no such program on this node. */
  | 'put-or-nothing'
  | 'drop'
  /** It never succeeds. */
  | 'fail-to-drop';

/** Why a command fails that does not fail on other nodes. */
export const UNLUCKY = 'fails on this node';

type CommandName = 'check' | 'apply' | 'undo';

/** A command of an `Exec` for this world. */
export const commandOf = (program: Program, ...rest: readonly string[]): object => ({ argv: [program, ...rest] });

/** What commands have left on a disk. Nothing else sees it, so nothing else can take it away. */
export class CommandTraces {
  readonly found = new Set<string>();

  check(entry: ConfigEntry): Outcomes['check-command'] {
    return this.found.has(traceOf(entry)) ? UNNEEDED : undefined;
  }

  apply(entry: ConfigEntry, node: string): Outcomes['apply'] {
    const [program, trace = '', unlucky = ''] = argvOf(entry, 'apply');
    const fails = unlucky === node;
    if (program === 'put-or-nothing' && fails)
      return { fault: 'node', reason: `${entry.name} ${UNLUCKY}`, neverRan: true };
    this.found.add(trace);
    return program === 'put-and-fail' && fails ? { fault: 'node', reason: `${entry.name} ${UNLUCKY}` } : undefined;
  }

  undo(entry: ConfigEntry): Refusal | undefined {
    const [program, trace = ''] = argvOf(entry, 'undo');
    if (program !== 'drop') return { fault: 'node', reason: 'it ended with 1' };
    this.found.delete(trace);
    return undefined;
  }

  /** The checks of these items that fail. */
  differences(items: readonly Item[]): readonly Difference[] {
    return items.flatMap((item) =>
      item.do === 'apply' && item.entry.kind === 'Exec' && this.check(item.entry) === undefined
        ? [{ what: `Exec/${item.entry.name}`, how: 'check: it ended with 1', entry: item.entry }]
        : [],
    );
  }
}

/** What the command leaves on the machine. */
export const traceOf = (entry: ConfigEntry): string => argvOf(entry, 'check')[1] ?? '';

const argvOf = ({ spec }: ConfigEntry, command: CommandName): readonly string[] =>
  (spec[command] as { readonly argv: readonly string[] }).argv;
