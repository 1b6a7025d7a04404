/** Where the arguments stand that the kernel is started with next time. Each set is kept apart by its name. */
export interface BootLoader {
  /** The file that is a set's own, and is given back like any other; undefined where sets stand in files of others. */
  fileOf(name: string): string | undefined;
  /** Undefined if the set is there as it should be. */
  differs(name: string, args: readonly string[]): Promise<string | undefined>;
  put(name: string, args: readonly string[], timeoutMs: number): Promise<void>;
  /** How the set is still there; undefined when nothing of it is. */
  remains(name: string): Promise<string | undefined>;
  /** Takes the set out, once its own file is given back. */
  clear(name: string, timeoutMs: number): Promise<void>;
}
