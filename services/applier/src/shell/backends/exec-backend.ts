import type { ConfigEntry } from '#libs/contracts';
import type { Original } from '../../core/index.js';
import { either, runCommand } from '../command.js';
import {
  argvOf,
  durationOr,
  NeverRanError,
  RefusedError,
  type Backend,
  type BackendFactory,
  type Surroundings,
} from '../ports.js';

const CHECK_TIMEOUT_MS = 30_000;
const APPLY_TIMEOUT_MS = 300_000;

/**
 * `Exec {check: {argv}, apply: {argv}, undo: {argv}, timeout}`: if `check` exits with 0, there is nothing to do.
 * Otherwise `apply` runs, and then `check` once more. It manages no resource: nothing is saved, and only its `undo` can
 * undo it.
 */
class ExecBackend implements Backend {
  readonly kind = 'Exec';

  constructor(private readonly surroundings: Surroundings) {}

  resources(): readonly string[] {
    return [];
  }

  title(entry: ConfigEntry): string {
    return `Exec/${entry.name}`;
  }

  async check(entry: ConfigEntry): Promise<void> {
    if (!this.surroundings.allowExec)
      throw new RefusedError('node', 'this node does not allow commands (its applier runs without --allow-exec)');
    argvOf(entry.spec['check'], 'check');
    argvOf(entry.spec['apply'], 'apply');
    if (entry.spec['undo'] !== undefined) argvOf(entry.spec['undo'], 'undo');
    durationOr(APPLY_TIMEOUT_MS, entry.spec['timeout']);
  }

  original(): Promise<Original> {
    throw new Error('an Exec has no original');
  }

  restore(): Promise<void> {
    throw new Error('an Exec cannot be undone');
  }

  differsFromOriginal(): Promise<string | undefined> {
    throw new Error('an Exec has no original');
  }

  async isUnneeded(entry: ConfigEntry, leftMs: () => number): Promise<boolean> {
    await this.check(entry);
    return (await this.differs(entry, leftMs)) === undefined;
  }

  apply(entry: ConfigEntry, leftMs: () => number): Promise<void> {
    return this.run(entry, 'apply', leftMs);
  }

  undo(entry: ConfigEntry, leftMs: () => number): Promise<void> {
    return this.run(entry, 'undo', leftMs);
  }

  private async run(entry: ConfigEntry, command: 'apply' | 'undo', leftMs: () => number): Promise<void> {
    // The check may have used up the time.
    const limitMs = Math.min(leftMs(), durationOr(APPLY_TIMEOUT_MS, entry.spec['timeout']));
    if (limitMs <= 0) throw new Error(`not enough time to run ${command}`);
    const result = await runCommand(argvOf(entry.spec[command], command), { ...this.surroundings, timeoutMs: limitMs });
    if (!result.started) throw new NeverRanError(result.reason);
    if (!result.passed) throw new Error(result.reason);
  }

  async differs(
    entry: ConfigEntry,
    leftMs: () => number = () => Infinity,
    ending?: AbortSignal,
  ): Promise<string | undefined> {
    if (!this.surroundings.allowExec)
      return 'this node does not allow commands (its applier runs without --allow-exec)';
    const limitMs = Math.min(leftMs(), CHECK_TIMEOUT_MS, durationOr(CHECK_TIMEOUT_MS, entry.spec['timeout']));
    const { passed, reason } = await runCommand(argvOf(entry.spec['check'], 'check'), {
      ...this.surroundings,
      timeoutMs: limitMs,
      ending: either(this.surroundings.ending, ending),
    });
    return passed ? undefined : `check: ${reason}`;
  }
}

export const execBackend: BackendFactory = {
  capabilities: ({ allowExec }) => (allowExec ? ['kind:Exec'] : []),
  create: (surroundings) => new ExecBackend(surroundings),
};
