import { byAge, changeSequence, decodeView, fragmentId, type ChangeView } from '#libs/contracts';
import { hashOf, type Digest } from './resource.js';

/** The change deletes the fragment. */
export const ABSENT = 'absent';

/** What a change says about each fragment that it touches: its digest, or that it must not exist. */
export type Contents = ReadonlyMap<string, string>;

/** The state of a change; `published` means that the merger has not read it yet. */
export type Change = Omit<ChangeView, 'phase'> & { readonly phase: ChangeView['phase'] | 'published' };

/** Whether the content of a change still counts; `moot` if another one replaced it. */
export type Weight = 'open' | 'committed' | 'failed' | 'moot';

export function weightOf({ phase, outcome }: Change): Weight {
  if (phase === 'committed') return 'committed';
  if (phase === 'rejected') return 'failed';
  if (phase === 'ended') return outcome === 'superseded' || outcome === 'duplicate' ? 'moot' : 'failed';
  return 'open';
}

/** Reads which fragments a published text contains. It is lenient: the merger decides whether the text is valid. */
export function contentsOf(text: string, digest: Digest): Contents {
  const contents = new Map<string, string>();
  try {
    const body = JSON.parse(text) as {
      readonly kind?: string;
      readonly apply?: readonly PublishedManifest[];
      readonly delete?: readonly { readonly kind: string; readonly name: string }[];
    };
    for (const { kind, name } of body.delete ?? []) contents.set(`${kind}/${name}`, ABSENT);
    for (const { kind, metadata, spec } of body.kind === undefined ? (body.apply ?? []) : [body as PublishedManifest]) {
      contents.set(
        `${kind}/${metadata.name}`,
        hashOf({ kind, name: metadata.name, labels: metadata.labels ?? {}, spec }, digest),
      );
    }
  } catch {
    // An unreadable change was refused, and says nothing about any fragment.
  }
  return contents;
}

interface PublishedManifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: object };
  readonly spec: unknown;
}

/**
 * The changes by what they touch, newest first. For each fragment, only those that may still matter: down to the
 * committed one.
 */
export class ChangeIndex {
  private readonly changes = new Map<string, Change>();
  private readonly touching = new Map<string, readonly string[]>();
  private readonly contents = new Map<string, Contents>();
  private readonly ended = new Map<string, number>();
  /** What the view of fragments shows: by fragment, the change that was committed last, and what it says. */
  private readonly committed = new Map<string, { readonly change: string; readonly content: string }>();
  /** The newest that the view of changes shows. */
  newestShown = 0;
  /** The ledger sequence of the last commit. */
  committedAt = 0;

  get(change: string): Change | undefined {
    return this.changes.get(change);
  }

  /** Oldest first. */
  *all(): Iterable<Change> {
    yield* [...this.changes.values()].sort((a, b) => byAge(a.change, b.change));
  }

  contentsOf(change: string): Contents | undefined {
    return this.contents.get(change);
  }

  /** What a change says about a fragment that it touches; undefined if the change has to be read first. */
  contentOf(change: string, id: string): string | undefined {
    const committed = this.committed.get(id);
    if (committed?.change === change) return committed.content;
    const contents = this.contents.get(change);
    return contents && (contents.get(id) ?? ABSENT);
  }

  /** Takes what the merger shows of a fragment: `says` is its digest, or that it does not exist. */
  showFragment(id: string, change: string, content: string): void {
    this.committed.set(id, { change, content });
  }

  /** When a change ended, monotonic. */
  endedMs(change: string): number {
    return this.ended.get(change) ?? 0;
  }

  /** Records what the merger shows of a change; `endedMs`: when it ended. */
  show(view: ChangeView, endedMs: number): void {
    const { change } = view;
    this.changes.set(change, view);
    if (view.phase === 'ended' || view.phase === 'rejected') this.ended.set(change, endedMs);
    this.newestShown = Math.max(this.newestShown, changeSequence(change));
    if (view.phase === 'committed') this.committedAt = Math.max(this.committedAt, view.ledger);
    for (const ref of [...view.apply, ...view.delete]) this.touch(`${ref.kind}/${ref.name}`, change);
    // A rollback is published without content: it has some since it was accepted.
    if (view.rollbackOf !== undefined && this.contents.get(change)?.size === 0) this.contents.delete(change);
  }

  /** Forgets a change that the merger no longer shows, because later changes replaced it. */
  forget(change: string): void {
    const view = this.changes.get(change);
    const refs = [...(view?.apply ?? []), ...(view?.delete ?? [])].map(fragmentId);
    for (const id of new Set([...refs, ...(this.contents.get(change)?.keys() ?? [])])) {
      const left = (this.touching.get(id) ?? []).filter((one) => one !== change);
      if (left.length > 0) this.touching.set(id, left);
      else this.touching.delete(id);
    }
    for (const table of [this.changes, this.contents, this.ended]) table.delete(change);
  }

  /**
   * Changes whose content must be read to know what they touch. The view of a change that was refused because of its
   * form lacks it.
   */
  get unread(): readonly string[] {
    return [...this.changes.values()]
      .filter(
        ({ change, phase, apply, delete: gone }) =>
          phase === 'rejected' && apply.length + gone.length === 0 && !this.contents.has(change),
      )
      .map(({ change }) => change);
  }

  /** Records a published change. */
  read(change: string, contents: Contents): void {
    this.contents.set(change, contents);
    if (!this.changes.has(change)) this.changes.set(change, published(change));
    for (const id of contents.keys()) this.touch(id, change);
  }

  /** The changes that touch a fragment, newest first, down to the first committed one. */
  touchingOf(id: string): readonly Change[] {
    const found: Change[] = [];
    for (const name of this.touching.get(id) ?? []) {
      const change = this.changes.get(name);
      if (change === undefined) continue;
      found.push(change);
      if (weightOf(change) === 'committed') break;
    }
    return found;
  }

  private touch(id: string, change: string): void {
    const before = this.touching.get(id) ?? [];
    if (!before.includes(change))
      this.touching.set(
        id,
        [...before, change].sort((a, b) => byAge(b, a)),
      );
  }
}

/** With default values for all fields, as in proto3. */
const NOTHING_KNOWN = decodeView('changes', '{}');
const published = (change: string): Change => ({ ...NOTHING_KNOWN, change, phase: 'published' });
