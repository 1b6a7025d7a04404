import { fragmentId, type FragmentRef, type FragmentView } from '#libs/contracts';
import { leavesEveryNode } from '#libs/manifests';
import type { Session } from '../connection/session.js';
import { EXIT, type ExitCode } from '../output/exit.js';

/**
 * After a committed deletion: waits until no node has those of the fragments any more that have `deletion: everyNode`.
 */
export async function waitForRemoval(
  session: Session,
  refs: readonly FragmentRef[],
  timeoutMs: number,
): Promise<ExitCode> {
  const ending = AbortSignal.any([session.io.interrupted, AbortSignal.timeout(Math.max(0, Math.ceil(timeoutMs)))]);
  const left = await Promise.all(refs.map((ref) => removal(session, ref, ending)));
  const still = left.filter((one) => one !== undefined);
  for (const { fragment, stillOn } of still)
    session.io.say(
      `${fragment === undefined ? '' : fragmentId(fragment)} is still being removed from ${stillOn.join(', ')}: see why with sluice why ${stillOn[0] ?? 'NODE'}; if a node never returns, remove it with sluice remove NODE`,
    );
  return still.length === 0 ? EXIT.done : EXIT.unfinished;
}

/** Resolves when the fragment is removed, or with its last view when time is up. */
async function removal(session: Session, ref: FragmentRef, ending: AbortSignal): Promise<FragmentView | undefined> {
  const fleet = await session.fleet();
  const key = `${ref.kind}.${ref.name}`;
  let view = await fleet.get('fragments', key);
  if (view === undefined || isOver(view)) return undefined;
  let shown = '';
  for await (const { value } of fleet.watch('fragments', key, ending)) {
    view = value;
    if (isOver(value)) return undefined;
    const line = `${fragmentId(ref)} is being removed; still on ${value.stillOn.join(', ')}`;
    if (value.removing && line !== shown) session.io.say(line);
    shown = line;
  }
  return view;
}

/** Without the setting, the end of the rollout is the end of the deletion. */
const isOver = ({ fragment, gone, removing }: FragmentView): boolean =>
  fragment === undefined || !leavesEveryNode(fragment) || (gone && !removing);
