import { CONTENT_FIELDS, type Entry, type Said } from './ignition.js';
import type { ImportReport } from './import-report.js';

/** They belong to a content, whose replacement is named. */
const UNNAMED: readonly string[] = Object.keys(CONTENT_FIELDS).filter((field) => field !== 'content');

/**
 * Merges entries as Ignition does, and so MCO: of the same file, directory or unit a later one replaces what it says and inherits what it
 * does not say; what it appends comes after what was appended. Files, directories and links of one path take each other's place.
 */
export class IgnitionMerge {
  private readonly merged = new Map<string, Entry>();

  constructor(private readonly report: ImportReport) {}

  get entries(): readonly Entry[] {
    return [...this.merged.values()];
  }

  add(entry: Entry): void {
    const key = `${entry.kind === 'unit' ? 'unit' : 'path'} ${entry.name}`;
    const before = this.merged.get(key);
    if (before === undefined) this.merged.set(key, entry);
    else if (before.kind === entry.kind) this.merged.set(key, this.merge(before, entry));
    else {
      this.report.say(
        before.where,
        `the ${before.kind} ${entry.name} is replaced by the ${entry.kind} of ${entry.where}`,
      );
      this.merged.set(key, entry);
    }
  }

  private merge(before: Entry, later: Entry): Entry {
    const fields = new Map<string, Said>(before.fields);
    for (const [field, said] of later.fields) {
      const old = fields.get(field);
      if (old !== undefined && old.value !== said.value && !UNNAMED.includes(field))
        this.report.say(old.where, `${field} of ${later.name} is replaced by ${said.where}`);
      fields.set(field, said);
    }
    return {
      ...before,
      where: later.where,
      fields,
      appended: [...before.appended, ...later.appended],
      isWhole: before.isWhole && later.isWhole,
    };
  }
}
