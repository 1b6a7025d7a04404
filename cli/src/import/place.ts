import { isObject } from '#libs/manifests';
import type { Fields, ImportReport } from './import-report.js';

/**
 * A map of the source, and its path. Reading a field marks it as used. A field of the wrong type is reported at once,
 * and `rest` reports the fields that were not read, so nothing is lost silently.
 */
export class Place {
  private readonly taken = new Set<string>();
  private misfits = 0;

  constructor(
    private readonly report: ImportReport,
    readonly where: string,
    readonly fields: Fields,
    private readonly path = '',
  ) {}

  /** Whether every field that was read had the right shape. */
  get isSound(): boolean {
    return this.misfits === 0;
  }

  say(what: string): void {
    this.report.say(this.where, what);
  }

  leave(field: string): void {
    this.say(`skipped ${this.path}${field}: unsupported field`);
  }

  /** These fields, without the empty ones. */
  take(fields: readonly string[]): Fields {
    return Object.fromEntries(
      fields.map((field) => [field, this.raw(field)] as const).filter(([, value]) => !saysNothing(value)),
    );
  }

  raw(field: string): unknown {
    this.taken.add(field);
    return this.fields[field];
  }

  text(field: string): string | undefined {
    return this.shaped(field, (value): value is string => typeof value === 'string', 'a string');
  }

  flag(field: string): boolean | undefined {
    return this.shaped(field, (value): value is boolean => typeof value === 'boolean', 'true or false');
  }

  whole(field: string, max: number): number | undefined {
    return this.shaped(
      field,
      (value): value is number => typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max,
      `a whole number from 0 to ${max}`,
    );
  }

  /** The map in this field, or an empty map. */
  map(field: string, path = `${this.path}${field}.`): Place {
    return new Place(this.report, this.where, this.shaped(field, isObject, 'a map') ?? {}, path);
  }

  texts(field: string): readonly string[] {
    return this.list(field).flatMap((item, i) =>
      typeof item === 'string' ? [item] : this.misfit(`${field}[${i}]`, 'a string'),
    );
  }

  maps(field: string): readonly Place[] {
    return this.list(field).flatMap((item, i) =>
      isObject(item)
        ? [new Place(this.report, this.where, item, `${this.path}${field}[${i}].`)]
        : this.misfit(`${field}[${i}]`, 'a map'),
    );
  }

  /** The maps of a list, each named by one of its fields. */
  called(field: string, by: string, as = ''): readonly { readonly name: string; readonly place: Place }[] {
    return this.list(field).flatMap((item, i) => {
      if (!isObject(item)) return this.misfit(`${field}[${i}]`, 'a map');
      const name = item[by];
      if (typeof name !== 'string' || name === '') {
        this.say(`skipped ${this.path}${field}[${i}]: no ${by}`);
        return [];
      }
      const place = new Place(this.report, `${this.where} ${as}${name}`, item);
      place.raw(by);
      return [{ name, place }];
    });
  }

  /** Reports the fields that were not read, except those with their default value. Returns true if there are any. */
  rest(defaults: Fields = {}): boolean {
    const left = Object.entries(this.fields).filter(
      ([field, value]) => !this.taken.has(field) && !saysNothing(value) && defaults[field] !== value,
    );
    for (const [field] of left) this.leave(field);
    return left.length > 0;
  }

  private list(field: string): readonly unknown[] {
    return this.shaped(field, (value): value is readonly unknown[] => Array.isArray(value), 'a list') ?? [];
  }

  private shaped<T>(field: string, fits: (value: unknown) => value is T, noun: string): T | undefined {
    const value = this.raw(field);
    if (value === undefined || value === null || fits(value)) return value ?? undefined;
    this.misfit(field, noun);
    return undefined;
  }

  private misfit(field: string, noun: string): never[] {
    this.misfits += 1;
    this.say(`skipped ${this.path}${field}: must be ${noun}`);
    return [];
  }
}

/** Other systems write empty fields explicitly. */
const saysNothing = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === '' ||
  (Array.isArray(value) && value.length === 0) ||
  (isObject(value) && Object.values(value).every(saysNothing));
