import { createHash } from 'node:crypto';
import { isObject, type Manifest } from '#libs/manifests';

export type Fields = Readonly<Record<string, unknown>>;

/** The result of an import: manifests, and messages about what was skipped or changed. */
export interface ImportResult {
  readonly manifests: readonly Manifest[];
  readonly words: readonly string[];
}

/** Collects what is imported. Names stay the same as long as the source does. */
export class ImportReport implements ImportResult {
  readonly manifests: Manifest[] = [];
  readonly words: string[] = [];
  private readonly names = new Set<string>();
  private readonly nameByPlace = new Map<string, string>();

  add(kind: string, name: string, spec: Fields): void {
    const label = this.nameFor(kind, name);
    this.nameByPlace.set(`${kind}/${name}`, label);
    this.addNamed(kind, label, {}, spec);
  }

  /** With a name that is valid and unique. */
  addNamed(kind: string, name: string, labels: Fields, spec: Fields): void {
    const metadata = { name, ...(Object.keys(labels).length === 0 ? {} : { labels }) };
    this.manifests.push({ apiVersion: 'sluice.dev/v1alpha1', kind, metadata, spec });
  }

  /** The name of an imported fragment: its name in the source, or a name that is derived from it. */
  nameOf(kind: string, name: string): string {
    return this.nameByPlace.get(`${kind}/${name}`) ?? labelOf(name);
  }

  say(where: string, what: string): void {
    this.words.push(`${where}: ${what}`);
  }

  skip(where: string, why: string): void {
    this.words.push(`skipped ${where}: ${why}`);
  }

  private nameFor(kind: string, wanted: string): string {
    const label = labelOf(wanted);
    for (let i = 1; ; i++) {
      const name = i === 1 ? label : labelOf(`${label.slice(0, MAX_LABEL - 4)}-${i}`);
      if (this.names.has(`${kind}/${name}`)) continue;
      this.names.add(`${kind}/${name}`);
      return name;
    }
  }
}

/** The object in this field, or an empty object. */
export const fieldsAt = (fields: Fields, field: string): Fields => {
  const value = fields[field];
  return isObject(value) ? value : {};
};

/** The texts of the source are literal: braces in them are not templates of Sluice. */
export function literal<T>(value: T): T {
  if (typeof value === 'string') return value.replaceAll('{{', '{{{{') as T;
  if (Array.isArray(value)) return value.map(literal) as T;
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, key === 'nodeSelector' ? item : literal(item)]),
  ) as T;
}

const MAX_LABEL = 63;
const DIGEST = 8;

/** A DNS label. One that had to be cut has a digest of the whole. */
function labelOf(text: string): string {
  const label = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '');
  if (label !== '' && label.length <= MAX_LABEL) return label;
  const digest = createHash('sha256').update(text).digest('hex').slice(0, DIGEST);
  return `${label.slice(0, MAX_LABEL - DIGEST - 1).replace(/-+$/, '')}-${digest}`.replace(/^-/, '');
}
