import { createHash } from 'node:crypto';
import { isObject, type Manifest } from '#libs/manifests';

export type Fields = Readonly<Record<string, unknown>>;

/** What an import comes to: manifests, and in words what of its source has no equivalent. */
export interface Imported {
  readonly manifests: readonly Manifest[];
  readonly words: readonly string[];
}

/** Gathers what is imported; names stay the same as long as the source does. */
export class ImportReport implements Imported {
  readonly manifests: Manifest[] = [];
  readonly words: string[] = [];
  private readonly names = new Set<string>();
  private readonly given = new Map<string, string>();

  add(kind: string, name: string, spec: Fields): void {
    const label = this.nameFor(kind, name);
    this.given.set(`${kind}/${name}`, label);
    this.manifests.push({ apiVersion: 'sluice.dev/v1alpha1', kind, metadata: { name: label }, spec });
  }

  /** What is called so in the source is called so here; what was not imported, as it would be. */
  nameOf(kind: string, name: string): string {
    return this.given.get(`${kind}/${name}`) ?? labelOf(name);
  }

  say(where: string, what: string): void {
    this.words.push(`${where}: ${what}`);
  }

  /** Names the fields that nothing was made of. */
  leftOver(where: string, fields: Fields, known: readonly string[]): void {
    for (const [field, value] of Object.entries(fields)) {
      if (!known.includes(field) && !isEmpty(value)) this.say(where, `${field} has no equivalent, and is left out`);
    }
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

/** The object at this place; an empty one where there is none. */
export const fieldsAt = (value: unknown, ...path: readonly string[]): Fields => {
  const found = path.reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), value);
  return isObject(found) ? found : {};
};

/** Only these of its fields, those that are empty left out. */
export const pick = (fields: Fields, names: readonly string[]): Fields =>
  Object.fromEntries(names.filter((name) => !isEmpty(fields[name])).map((name) => [name, fields[name]]));

/** What stands in the source stands for itself: it is no template of Sluice's. */
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

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0);

/** A DNS label; one that had to be cut keeps a digest of the whole. */
function labelOf(text: string): string {
  const label = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '');
  if (label !== '' && label.length <= MAX_LABEL) return label;
  const digest = createHash('sha256').update(text).digest('hex').slice(0, DIGEST);
  return `${label.slice(0, MAX_LABEL - DIGEST - 1).replace(/-+$/, '')}-${digest}`.replace(/^-/, '');
}
