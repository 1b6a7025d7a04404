import { isDnsSubdomain } from '#libs/contracts';
import { KINDS, knownWords } from '#libs/manifests';
import { UsageError, type ExitCode } from '../output/exit.js';
import { readManifestNames } from '../input/manifest-input.js';
import type { Session } from '../connection/session.js';
import { publish, type PublishFlags } from './apply.js';

/** `sluice delete KIND NAME | -f PATH`: publishes a change that deletes fragments. */
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
    const refs = await readManifestNames(flags.filename ?? [], session.io);
    return publish(session, { apply: [], delete: refs }, flags);
  }
  const kindClass = kindNamed(kind);
  const [first = '', second] = kind.split('/');
  const firstKind = kindNamed(first);
  if (firstKind !== undefined && second !== undefined)
    throw new UsageError(`give the kind and the name separately: sluice delete ${firstKind.name} ${second || 'NAME'}`);
  if (kindClass === undefined)
    throw new UsageError(
      `unknown kind ${JSON.stringify(kind)}; ${knownWords(
        kind,
        'kinds',
        KINDS.map(({ name }) => name),
      )}`,
    );
  if (name === undefined)
    throw new UsageError(
      `the name is missing: sluice delete ${kindClass.name} NAME; list names with sluice get fragments`,
    );
  if (!isDnsSubdomain(name))
    throw new UsageError(`${JSON.stringify(name)} is not a fragment name: list names with sluice get fragments`);
  return publish(session, { apply: [], delete: [{ kind: kindClass.name, name }] }, flags);
}

/** Also finds a kind in the plural and in lower case, as kubectl does. */
const kindNamed = (text: string): (typeof KINDS)[number] | undefined =>
  KINDS.find(({ name }) => [name.toLowerCase(), `${name.toLowerCase()}s`].includes(text.toLowerCase()));
