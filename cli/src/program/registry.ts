import type { Command } from 'commander';
import type { ExitCode } from '../exit.js';
import type { GlobalFlags, Session } from '../session.js';

/** What runs a command: it opens the session that the common flags describe. Undefined: the process ends by itself. */
export type Run = (flags: GlobalFlags, command: (session: Session) => Promise<ExitCode | undefined>) => Promise<void>;

/** How the three groups of commands are added. */
export interface Registry {
  readonly program: Command;
  /** Makes an action of a command that is loaded only when it is called. */
  action<A extends unknown[]>(
    call: (session: Session, ...args: A) => Promise<ExitCode | undefined>,
  ): (...args: A) => Promise<void>;
}
