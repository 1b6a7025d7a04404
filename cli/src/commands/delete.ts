import { isDnsLabel } from '#libs/contracts';
import { UsageError, type ExitCode } from '../exit.js';
import { readManifestInput } from '../manifest-input.js';
import type { Session } from '../session.js';
import { publish, type PublishFlags } from './apply.js';

/** `sluice delete KIND NAME | -f PATH`: publishes a change that takes fragments away. */
export async function remove(session: Session, kind: string | undefined, name: string | undefined, flags: PublishFlags): Promise<ExitCode> {
  const isByName = kind !== undefined;
  const isByFile = (flags.filename ?? []).length > 0;
  if (isByName === isByFile) throw new UsageError('say what to delete either as KIND NAME or with -f PATH');
  if (isByFile) {
    const { fragments } = await readManifestInput(flags.filename ?? [], session.io);
    return publish(session, { apply: [], delete: fragments.map((fragment) => ({ kind: fragment.kind, name: fragment.name })) }, flags);
  }
  if (name === undefined) throw new UsageError(`which ${kind}? sluice delete ${kind} NAME; sluice get fragments lists them`);
  if (!isDnsLabel(name)) throw new UsageError(`${JSON.stringify(name)} is not the name of a fragment: sluice get fragments lists them`);
  return publish(session, { apply: [], delete: [{ kind: kind as string, name }] }, flags);
}
