import { effectivePolicy, planActions } from '#libs/rules';
import type { Config, Fragment } from '#libs/contracts';
import { kindOf } from '#libs/manifests';
import { EXIT, UsageError, type ExitCode } from '../output/exit.js';
import { readManifestFiles } from '../input/manifest-input.js';
import { actionText } from '../output/plan.js';
import { table } from '../output/table.js';
import type { Session } from '../connection/session.js';

/**
 * `sluice actions --from FILE --to FILE`: the actions that a change between two sets of fragments needs, without a
 * server.
 */
export async function actions(
  session: Session,
  flags: { readonly from: string; readonly to: string },
): Promise<ExitCode> {
  const { io } = session;
  // The second read of stdin would find nothing.
  if (flags.from === '-' && flags.to === '-')
    throw new UsageError('--from and --to cannot both be stdin: name a file for one of them');
  const from = await readManifestFiles([flags.from], io, '--from');
  const to = await readManifestFiles([flags.to], io, '--to');
  const policy = effectivePolicy(to.fragments.map(forEveryNode), {});
  const plan = planActions(configOf(from.fragments), configOf(to.fragments), policy);
  if (session.isJson) {
    io.out(JSON.stringify({ actions: plan.actions, because: plan.because, changed: plan.changed }));
    return EXIT.done;
  }
  if (plan.because.length > 0)
    io.out(
      `${table(
        ['CHANGES', 'NEEDS', 'BY RULE'],
        plan.because.map((one) => [one.what, actionText(one.actions), one.rule]),
      )}\n`,
    );
  io.out(plan.because.length === 0 ? 'Nothing changes.' : `Actions: ${actionText(plan.actions)}`);
  return EXIT.done;
}

/** Without a node, every fragment counts. */
const forEveryNode = (fragment: Fragment): Fragment => ({ ...fragment, spec: { ...fragment.spec, nodeSelector: {} } });

function configOf(fragments: readonly Fragment[]): Config {
  const entries = fragments
    .filter(({ kind }) => kindOf(kind)?.role !== 'policy')
    .map(({ kind, name, spec }) => {
      const { nodeSelector: _, ...rest } = spec ?? {};
      return { kind, name, spec: rest };
    });
  return {
    fragments: entries.sort((a, b) => (a.kind === b.kind ? (a.name < b.name ? -1 : 1) : a.kind < b.kind ? -1 : 1)),
  };
}
