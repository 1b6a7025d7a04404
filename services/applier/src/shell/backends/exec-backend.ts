import type { ConfigEntry } from '#libs/contracts';
import type { Original } from '../../core/index.js';
import { runCommand } from '../command.js';
import { argvOf, durationOr, RefusedError, type Backend, type BackendFactory, type Surroundings } from '../ports.js';

const CHECK_TIMEOUT_MS = 30_000;
const APPLY_TIMEOUT_MS = 300_000;

/**
 * `Exec {check: {argv}, apply: {argv}, timeout}`: a check that ends with 0 says that all is as it should be; otherwise
 * `apply` is run, and the check once more. It manages no resource: nothing is kept, nothing can be undone.
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

  async apply(entry: ConfigEntry, leftMs: () => number): Promise<void> {
    await this.check(entry);
    if ((await this.differs(entry, leftMs())) === undefined) return;
    // The check may have taken what was left.
    const limitMs = Math.min(leftMs(), durationOr(APPLY_TIMEOUT_MS, entry.spec['timeout']));
    if (limitMs <= 0) throw new Error('not enough time to run apply');
    const result = await runCommand(argvOf(entry.spec['apply'], 'apply'), { ...this.surroundings, timeoutMs: limitMs });
    if (!result.passed) throw new Error(result.reason);
  }

  async differs(entry: ConfigEntry, mostMs = CHECK_TIMEOUT_MS): Promise<string | undefined> {
    if (!this.surroundings.allowExec)
      return 'this node does not allow commands (its applier runs without --allow-exec)';
    const limitMs = Math.min(mostMs, CHECK_TIMEOUT_MS, durationOr(CHECK_TIMEOUT_MS, entry.spec['timeout']));
    const { passed, reason } = await runCommand(argvOf(entry.spec['check'], 'check'), {
      ...this.surroundings,
      timeoutMs: limitMs,
    });
    return passed ? undefined : `check: ${reason}`;
  }
}

export const execBackend: BackendFactory = {
  capabilities: ({ allowExec }) => (allowExec ? ['kind:Exec'] : []),
  create: (surroundings) => new ExecBackend(surroundings),
};
