import { isObject } from '#libs/manifests';
import type { Fields, ImportReport } from './import-report.js';

/**
 * A map of the source, with the words for where it stands. Who asks for a field takes it; a field that has another shape than was asked for
 * is named at once, and `rest` names what nobody asked for: so nothing is lost without a word.
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

  /** Whether all that was asked for, and was there, had the shape that it should have. */
  get isSound(): boolean {
    return this.misfits === 0;
  }

  say(what: string): void {
    this.report.say(this.where, what);
  }

  leave(field: string): void {
    this.say(`${this.path}${field} has no equivalent, and is left out`);
  }

  raw(field: string): unknown {
    this.taken.add(field);
    return this.fields[field];
  }

  text(field: string): string | undefined {
    return this.shaped(field, (value): value is string => typeof value === 'string', 'text');
  }

  flag(field: string): boolean | undefined {
    return this.shaped(field, (value): value is boolean => typeof value === 'boolean', 'boolean');
  }

  whole(field: string, max: number): number | undefined {
    return this.shaped(
      field,
      (value): value is number => typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max,
      `whole number from 0 to ${max}`,
    );
  }

  /** The map at this field; one without fields where there is none. */
  map(field: string, path = `${this.path}${field}.`): Place {
    return new Place(this.report, this.where, this.shaped(field, isObject, 'map') ?? {}, path);
  }

  texts(field: string): readonly string[] {
    return this.list(field).flatMap((item, i) =>
      typeof item === 'string' ? [item] : this.misfit(`${field}[${i}]`, 'text'),
    );
  }

  maps(field: string): readonly Place[] {
    return this.list(field).flatMap((item, i) =>
      isObject(item)
        ? [new Place(this.report, this.where, item, `${this.path}${field}[${i}].`)]
        : this.misfit(`${field}[${i}]`, 'map'),
    );
  }

  /** The maps of a list, each called by one of its fields; what has no such name is named by where it stands. */
  called(field: string, by: string, as = ''): readonly { readonly name: string; readonly place: Place }[] {
    return this.list(field).flatMap((item, i) => {
      if (!isObject(item)) return this.misfit(`${field}[${i}]`, 'map');
      const name = item[by];
      if (typeof name !== 'string' || name === '') {
        this.say(`${this.path}${field}[${i}] has no ${by}, and is left out`);
        return [];
      }
      const place = new Place(this.report, `${this.where} ${as}${name}`, item);
      place.raw(by);
      return [{ name, place }];
    });
  }

  /** Names what nobody asked for and what is not as it is anyway; true when there was something. */
  rest(anyway: Fields = {}): boolean {
    const left = Object.entries(this.fields).filter(
      ([field, value]) => !this.taken.has(field) && !saysNothing(value) && anyway[field] !== value,
    );
    for (const [field] of left) this.leave(field);
    return left.length > 0;
  }

  private list(field: string): readonly unknown[] {
    return this.shaped(field, (value): value is readonly unknown[] => Array.isArray(value), 'list') ?? [];
  }

  private shaped<T>(field: string, fits: (value: unknown) => value is T, noun: string): T | undefined {
    const value = this.raw(field);
    if (value === undefined || value === null || fits(value)) return value ?? undefined;
    this.misfit(field, noun);
    return undefined;
  }

  private misfit(field: string, noun: string): never[] {
    this.misfits += 1;
    this.say(`${this.path}${field} is no ${noun}, and is left out`);
    return [];
  }
}

/** Other systems write out what they leave empty. */
const saysNothing = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === '' ||
  (Array.isArray(value) && value.length === 0) ||
  (isObject(value) && Object.values(value).every(saysNothing));
