import { byAge, changeSequence, decodeView, type ChangeView } from '#libs/contracts';
import { hashOf, type Digest } from './resource.js';

/** A change takes the fragment away. */
export const ABSENT = 'absent';

/** What a change says of each fragment that it touches: the digest, or that it must not exist. */
export type Contents = ReadonlyMap<string, string>;

/** What is known of a change: `published` is one that the merger has not taken yet. */
export type Change = Omit<ChangeView, 'phase'> & { readonly phase: ChangeView['phase'] | 'published' };

/** How much a change still says of what is wanted: `moot` says nothing, another took its place. */
export type Weight = 'open' | 'committed' | 'failed' | 'moot';

export function weightOf({ phase, outcome }: Change): Weight {
  if (phase === 'committed') return 'committed';
  if (phase === 'rejected') return 'failed';
  if (phase === 'ended') return outcome === 'superseded' ? 'moot' : 'failed';
  return 'open';
}

/**
 * Reads what a published text says of which fragments. It is lenient: whether the text can be used is for the merger to
 * say.
 */
export function contentsOf(text: string, digest: Digest): Contents {
  const found = new Map<string, string>();
  try {
    const body = JSON.parse(text) as {
      readonly kind?: string;
      readonly apply?: readonly PublishedManifest[];
      readonly delete?: readonly { readonly kind: string; readonly name: string }[];
    };
    for (const { kind, name } of body.delete ?? []) found.set(`${kind}/${name}`, ABSENT);
    for (const { kind, metadata, spec } of body.kind === undefined ? (body.apply ?? []) : [body as PublishedManifest]) {
      found.set(
        `${kind}/${metadata.name}`,
        hashOf({ kind, name: metadata.name, labels: metadata.labels ?? {}, spec }, digest),
      );
    }
  } catch {
    // What cannot be read was refused, and says nothing of any fragment.
  }
  return found;
}

interface PublishedManifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: object };
  readonly spec: unknown;
}

/**
 * The changes by what they touch, newest first. Of each fragment only what may still matter: down to what is committed.
 */
export class ChangeIndex {
  private readonly changes = new Map<string, Change>();
  private readonly touching = new Map<string, readonly string[]>();
  private readonly contents = new Map<string, Contents>();
  private readonly ended = new Map<string, number>();
  /** The newest that the view of changes shows. */
  newestShown = 0;
  /** The ledger's sequence at which a change was committed last. */
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

  /** When a change ended, monotonic. */
  endedMs(change: string): number {
    return this.ended.get(change) ?? 0;
  }

  /** Takes what the merger shows of a change; `endedMs` of one that has ended. */
  show(view: ChangeView, endedMs: number): void {
    const { change } = view;
    this.changes.set(change, view);
    if (view.phase === 'ended') this.ended.set(change, endedMs);
    this.newestShown = Math.max(this.newestShown, changeSequence(change));
    if (view.phase === 'committed') this.committedAt = Math.max(this.committedAt, view.ledger);
    for (const ref of [...view.apply, ...view.delete]) this.touch(`${ref.kind}/${ref.name}`, change);
  }

  /**
   * Changes whose content has to be read to know what they touch: refused for their form, they are shown without it.
   */
  get unread(): readonly string[] {
    return [...this.changes.values()]
      .filter(
        ({ change, phase, apply, delete: gone }) =>
          phase === 'rejected' && apply.length + gone.length === 0 && !this.contents.has(change),
      )
      .map(({ change }) => change);
  }

  /** Takes what was published as a change. */
  read(change: string, contents: Contents): void {
    this.contents.set(change, contents);
    if (!this.changes.has(change)) this.changes.set(change, published(change));
    for (const id of contents.keys()) this.touch(id, change);
  }

  /** The changes that touch a fragment, newest first, down to the first that is committed. */
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

/** With the default of every field, as proto3 has it. */
const NOTHING_KNOWN = decodeView('changes', '{}');
const published = (change: string): Change => ({ ...NOTHING_KNOWN, change, phase: 'published' });
