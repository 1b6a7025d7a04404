import {
  checkManifest,
  nameInReasons,
  readManifests,
  withoutServerFields,
  type Manifest,
  type ManifestSource,
} from '#libs/manifests';
import type { NewObject } from '#libs/client';
import { fragmentId, reasonFor, type Fragment, type FragmentRef, type Reason } from '#libs/contracts';
import { RejectedError, UsageError, type PlacedReason } from '../output/exit.js';
import { readInputs, type InputText } from './input-files.js';
import { FILE_FIELD, readLocalFile, type LocalFile } from './local-file.js';
import { reasonAt, reasonOfProblem } from './placed-reason.js';
import type { Io } from '../output/io.js';

export interface ManifestInput {
  /** The documents to be published: as written, without what Kubernetes added. */
  readonly documents: readonly Manifest[];
  readonly fragments: readonly Fragment[];
  /** Local files that the manifests refer to: upload them before you publish. */
  readonly files: readonly NewObject[];
}

/** The manifests that `-f` names. Throws RejectedError with every reason, for every file. */
export async function readManifestInput(paths: readonly string[], io: Io): Promise<ManifestInput> {
  const input = await readManifestFiles(required(paths), io);
  found(input.documents, paths);
  return input;
}

/** The fragments that `-f` names. Their specs do not matter, nor do the local files that these refer to. */
export async function readManifestNames(paths: readonly string[], io: Io): Promise<readonly FragmentRef[]> {
  const inputs = await readInputs(required(paths), io);
  const names = await readEach<FragmentName>(inputs, (manifest, place) => {
    // Without a spec, the only other reasons are about the spec.
    const checked = checkManifest({ ...manifest, spec: {} }, place);
    const reasons = checked.ok ? [] : checked.reasons.filter(({ field }) => field.split('.')[0] !== 'spec');
    if (reasons.length > 0) return { ok: false, reasons };
    const { name } = manifest.metadata as { readonly name: string };
    return { ok: true, fragment: { kind: String(manifest.kind), name } };
  });
  return found(
    names.map(({ fragment }) => fragment),
    paths,
  );
}

function required(paths: readonly string[]): readonly string[] {
  if (paths.length === 0) throw new UsageError('-f is missing: give a file, a folder, or - for stdin');
  return paths;
}

/** Refuses an input without a manifest. */
export function found<T>(manifests: readonly T[], paths: readonly string[]): readonly T[] {
  if (manifests.length === 0) throw new UsageError(`-f ${paths.join(' ')}: contains no manifest`);
  return manifests;
}

/** The limit of NATS for one message, minus what the merger adds. */
const MAX_CHANGE_BYTES = 900 * 1_024;

/** Refuses a change that is too large before it is sent. */
export function checkSize(body: string): void {
  const bytes = Buffer.byteLength(body);
  if (bytes <= MAX_CHANGE_BYTES) return;
  const message = `the change is ${Math.ceil(bytes / 1_024)} KiB; the limit is ${MAX_CHANGE_BYTES / 1_024} KiB: split it into several changes, or name the file of large content with contentFrom.file, which is uploaded apart`;
  throw new RejectedError([reasonFor({}, 'too-large', message)]);
}

/** Like readManifestInput, but there may be no manifest at all. `flag` is the one that names the paths. */
export async function readManifestFiles(paths: readonly string[], io: Io, flag = '-f'): Promise<ManifestInput> {
  const inputs = await readInputs(paths, io, flag);
  const read = await readEach<LocalFile & { readonly fragment: Fragment }>(inputs, async (manifest, place, path) => {
    const local = await readLocalFile(manifest, path).catch((error: Error) => error);
    if (local instanceof Error) {
      const at = { fragment: nameInReasons(manifest, place), field: FILE_FIELD };
      return { ok: false, reasons: [reasonFor(at, 'no-file', local.message)] };
    }
    const checked = checkManifest(local.document, place);
    return checked.ok ? { ...checked, ...local } : checked;
  });
  const files = new Map(read.flatMap(({ file }) => (file === undefined ? [] : [[file.sha256, file] as const])));
  return {
    documents: read.map(({ document }) => document),
    fragments: read.map(({ fragment }) => fragment),
    files: [...files.values()],
  };
}

interface FragmentName {
  readonly fragment: FragmentRef;
}
type ReadManifest<T> = ({ readonly ok: true } & T) | { readonly ok: false; readonly reasons: readonly Reason[] };

/**
 * Reads every manifest, each fragment once. Throws RejectedError with every reason, each with its place. `place` names
 * a manifest as long as it has no name of its own; `path` is its file.
 */
async function readEach<T extends FragmentName>(
  inputs: readonly InputText[],
  read: (manifest: Manifest, place: string, path: string) => ReadManifest<T> | Promise<ReadManifest<T>>,
): Promise<readonly T[]> {
  const reasons: PlacedReason[] = [];
  const places = new Map<string, string>();
  const all: T[] = [];
  for (const input of inputs) {
    const file = readManifests(input.text);
    reasons.push(...file.problems.map((problem) => reasonOfProblem(input, problem)));
    for (const [index, manifest] of file.manifests.entries()) {
      const source = file.sources[index] as ManifestSource;
      const place = `${input.name}:${source.start.line}`;
      const one = await read(withoutServerFields(manifest), place, input.name);
      if (!one.ok) {
        reasons.push(
          ...one.reasons.map((reason) =>
            reasonAt(input, source.find(reason.field, reason.code === 'unknown-field' ? 'key' : 'value'), reason),
          ),
        );
        continue;
      }
      const id = fragmentId(one.fragment);
      const before = places.get(id);
      if (before !== undefined)
        reasons.push(
          reasonFor({ fragment: id }, 'duplicate', `is defined at ${before} and again at ${place}: keep one of them`),
        );
      places.set(id, place);
      all.push(one);
    }
  }
  if (reasons.length > 0) throw new RejectedError(reasons);
  return all;
}
