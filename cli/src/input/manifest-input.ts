import { checkManifest, readManifests, type Manifest, type ManifestSource } from '#libs/manifests';
import { fragmentId, reasonFor, type Fragment } from '#libs/contracts';
import { RejectedError, UsageError, type PlacedReason } from '../output/exit.js';
import { readInputs } from './input-files.js';
import { reasonAt, reasonOfProblem } from './placed-reason.js';
import type { Io } from '../output/io.js';

export interface ManifestInput {
  /** The documents as written, to be published. */
  readonly documents: readonly Manifest[];
  readonly fragments: readonly Fragment[];
}

/** The manifests that `-f` names. Throws RejectedError with every reason, of every file. */
export async function readManifestInput(paths: readonly string[], io: Io): Promise<ManifestInput> {
  if (paths.length === 0) throw new UsageError('-f is missing: give a file, a folder, or - for stdin');
  const input = await readManifestFiles(paths, io);
  if (input.documents.length === 0) throw new UsageError(`-f ${paths.join(' ')}: contains no manifest`);
  return input;
}

/** What NATS carries in one message, minus what the merger adds. */
const MAX_CHANGE_BYTES = 900 * 1_024;

/** Refuses a change that is too large before it is sent. */
export function checkSize(body: string): void {
  const bytes = Buffer.byteLength(body);
  if (bytes <= MAX_CHANGE_BYTES) return;
  const message = `the change is ${Math.ceil(bytes / 1_024)} KiB; the limit is ${MAX_CHANGE_BYTES / 1_024} KiB: split it into several changes`;
  throw new RejectedError([reasonFor({}, 'too-large', message)]);
}

/** Like readManifestInput, but there may be no manifest at all. */
export async function readManifestFiles(paths: readonly string[], io: Io): Promise<ManifestInput> {
  const reasons: PlacedReason[] = [];
  const documents: Manifest[] = [];
  const fragments: Fragment[] = [];
  const places = new Map<string, string>();
  for (const input of await readInputs(paths, io)) {
    const read = readManifests(input.text);
    reasons.push(...read.problems.map((problem) => reasonOfProblem(input, problem)));
    for (const [index, document] of read.manifests.entries()) {
      const source = read.sources[index] as ManifestSource;
      const place = `${input.name}:${source.start.line}`;
      const checked = checkManifest(document, place);
      if (!checked.ok) {
        reasons.push(
          ...checked.reasons.map((reason) =>
            reasonAt(input, source.find(reason.field, reason.code === 'unknown-field' ? 'key' : 'value'), reason),
          ),
        );
        continue;
      }
      const id = fragmentId(checked.fragment);
      const before = places.get(id);
      if (before !== undefined)
        reasons.push(
          reasonFor({ fragment: id }, 'duplicate', `is defined at ${before} and again at ${place}: keep one of them`),
        );
      places.set(id, place);
      documents.push(document);
      fragments.push(checked.fragment);
    }
  }
  if (reasons.length > 0) throw new RejectedError(reasons);
  return { documents, fragments };
}
