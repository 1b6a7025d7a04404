import { isDnsSubdomain } from '#libs/contracts';
import { KINDS, knownWords } from '#libs/manifests';
import { UsageError, type ExitCode } from '../output/exit.js';
import { readManifestInput } from '../input/manifest-input.js';
import type { Session } from '../connection/session.js';
import { publish, type PublishFlags } from './apply.js';

/** `sluice delete KIND NAME | -f PATH`: publishes a change that takes fragments away. */
export async function remove(
  session: Session,
  kind: string | undefined,
  name: string | undefined,
  flags: PublishFlags,
): Promise<ExitCode> {
  const isByName = kind !== undefined;
  const isByFile = (flags.filename ?? []).length > 0;
  if (isByName === isByFile) throw new UsageError('say what to delete: either KIND NAME, or -f PATH');
  if (kind === undefined) {
    const { fragments } = await readManifestInput(flags.filename ?? [], session.io);
    return publish(
      session,
      { apply: [], delete: fragments.map((fragment) => ({ kind: fragment.kind, name: fragment.name })) },
      flags,
    );
  }
  const known = KINDS.find(
    (one) => one.name.toLowerCase() === kind.toLowerCase() || `${one.name.toLowerCase()}s` === kind.toLowerCase(),
  );
  if (known === undefined)
    throw new UsageError(
      `unknown kind ${JSON.stringify(kind)}; ${knownWords(
        kind,
        'kinds',
        KINDS.map(({ name }) => name),
      )}`,
    );
  if (name === undefined)
    throw new UsageError(`the name is missing: sluice delete ${known.name} NAME; list names with sluice get fragments`);
  if (!isDnsSubdomain(name))
    throw new UsageError(`${JSON.stringify(name)} is not a fragment name: list names with sluice get fragments`);
  return publish(session, { apply: [], delete: [{ kind: known.name, name }] }, flags);
}
