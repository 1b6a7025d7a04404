import { stringify } from 'yaml';
import { KUBERNETES_YAML, readManifests } from '#libs/manifests';
import { EXIT, RejectedError, UsageError, type ExitCode } from '../output/exit.js';
import { importDocuments } from '../import/import-documents.js';
import { readInputs } from '../input/input-files.js';
import { found } from '../input/manifest-input.js';
import { reasonOfProblem } from '../input/placed-reason.js';
import type { Session } from '../connection/session.js';

/** `sluice import -f PATH`: converts resources of other systems to fragments, and reports what it skips. */
export async function importFragments(
  { io, isJson }: Session,
  { filename = [] }: { readonly filename?: readonly string[] },
): Promise<ExitCode> {
  if (filename.length === 0) throw new UsageError('-f is missing: name a file, a folder, or - for stdin');
  const read = (await readInputs(filename, io)).map((input) => ({
    input,
    ...readManifests(input.text, KUBERNETES_YAML),
  }));
  const reasons = read.flatMap(({ input, problems }) => problems.map((problem) => reasonOfProblem(input, problem)));
  if (reasons.length > 0) throw new RejectedError(reasons);
  const documents = found(
    read.flatMap((file) => file.manifests),
    filename,
  );
  const { manifests, words } = importDocuments(documents);
  for (const word of words) io.say(word);
  if (isJson) io.out(JSON.stringify(manifests));
  else if (manifests.length > 0)
    io.out(
      manifests
        .map((manifest) => stringify(manifest, { lineWidth: 0 }))
        .join('---\n')
        .trimEnd(),
    );
  return manifests.length === 0 ? EXIT.rejected : EXIT.done;
}
