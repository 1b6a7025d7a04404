import { CONTENT_FIELDS, type Entry, type FieldValue } from './ignition.js';
import type { ImportReport } from './import-report.js';

/** They belong to a content, whose override is reported. */
const UNNAMED: readonly string[] = Object.keys(CONTENT_FIELDS).filter((field) => field !== 'content');

/**
 * Merges entries like Ignition and MCO. A later file, directory or unit overrides the fields that it sets and inherits
 * the others. What it appends follows what was appended before. Files, directories and links of one path replace each
 * other.
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
        `the ${before.kind} ${entry.name} is overridden by the ${entry.kind} of ${entry.where}`,
      );
      this.merged.set(key, entry);
    }
  }

  private merge(before: Entry, later: Entry): Entry {
    const fields = new Map<string, FieldValue>(before.fields);
    for (const [field, value] of later.fields) {
      const old = fields.get(field);
      if (old !== undefined && old.value !== value.value && !UNNAMED.includes(field))
        this.report.say(old.where, `${field} of ${later.name} is overridden by ${value.where}`);
      fields.set(field, value);
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
