import { runApplier, type ApplierOptions, type RunningApplier } from './run-applier.js';

/** Many appliers in one process. */
export interface RunningAppliers {
  readonly appliers: readonly RunningApplier[];
  /** Those whose state folder cannot be used, and why; the others run. */
  readonly refused: readonly { readonly node: string; readonly error: Error }[];
  stop(): Promise<void>;
}

/** So many start at a time: each reads its journal, and a thousand at once would need as many open files. */
const AT_A_TIME = 32;

/** Starts many appliers; give each a bus of its own on one shared connection. */
export async function runAppliers(many: readonly ApplierOptions[]): Promise<RunningAppliers> {
  const appliers: RunningApplier[] = [];
  const refused: { node: string; error: Error }[] = [];
  for (let i = 0; i < many.length; i += AT_A_TIME) {
    await Promise.all(
      many.slice(i, i + AT_A_TIME).map(async (options) => {
        try {
          appliers.push(await runApplier(options));
        } catch (error) {
          options.log?.error({ node: options.node, error: (error as Error).message }, 'the applier cannot start');
          refused.push({ node: options.node, error: error as Error });
        }
      }),
    );
  }
  return { appliers, refused, stop: async () => void (await Promise.all(appliers.map((applier) => applier.stop()))) };
}
