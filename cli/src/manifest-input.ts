import { checkManifest, readManifests, type Manifest } from '#libs/manifests';
import { fragmentId, type Fragment, type Reason } from '#libs/contracts';
import { RejectedError, UsageError } from './exit.js';
import { readInputs } from './input-files.js';
import type { Io } from './io.js';

export interface ManifestInput {
  /** The documents as written, to be published. */
  readonly documents: readonly Manifest[];
  readonly fragments: readonly Fragment[];
}

/** The manifests that `-f` names. Throws RejectedError with every reason, of every file. */
export async function readManifestInput(paths: readonly string[], io: Io): Promise<ManifestInput> {
  if (paths.length === 0) throw new UsageError('-f is missing: name a file, a folder, or - for stdin');
  const input = await readManifestFiles(paths, io);
  if (input.documents.length === 0) throw new UsageError(`-f ${paths.join(' ')}: there is no manifest in it`);
  return input;
}

/** The same where there may be none. */
export async function readManifestFiles(paths: readonly string[], io: Io): Promise<ManifestInput> {
  const reasons: Reason[] = [];
  const documents: Manifest[] = [];
  const fragments: Fragment[] = [];
  const places = new Map<string, string>();
  for (const { name, text } of await readInputs(paths, io)) {
    const read = readManifests(text, name);
    reasons.push(
      ...read.problems.map((message) => ({ fragment: '', field: '', code: 'not-a-manifest', message, nodes: [] })),
    );
    for (const [index, document] of read.manifests.entries()) {
      const place = read.places[index] ?? name;
      const checked = checkManifest(document, place);
      if (!checked.ok) {
        reasons.push(
          ...checked.reasons.map((reason) =>
            reason.fragment === place ? reason : { ...reason, message: `${reason.message} (${place})` },
          ),
        );
        continue;
      }
      const id = fragmentId(checked.fragment);
      const before = places.get(id);
      if (before !== undefined)
        reasons.push({
          fragment: id,
          field: '',
          code: 'duplicate',
          message: `stands at ${before} and at ${place}: keep one of them`,
          nodes: [],
        });
      places.set(id, place);
      documents.push(document);
      fragments.push(checked.fragment);
    }
  }
  if (reasons.length > 0) throw new RejectedError(reasons);
  return { documents, fragments };
}
