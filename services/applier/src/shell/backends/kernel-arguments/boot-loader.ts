/** Stores the arguments with which the kernel starts next time. Each set has its own name. */
export interface BootLoader {
  /** The file of the set, which is restored like any other; undefined if sets are in shared files. */
  fileOf(name: string): string | undefined;
  /** Undefined if the set is stored as it should be. */
  differs(name: string, args: readonly string[]): Promise<string | undefined>;
  put(name: string, args: readonly string[], timeoutMs: number): Promise<void>;
  /** What is left of the set; undefined if nothing is. */
  remains(name: string): Promise<string | undefined>;
  /** Removes the set, after its own file was restored. */
  clear(name: string, timeoutMs: number): Promise<void>;
}
