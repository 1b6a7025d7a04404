import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { drawChart } from './chart.js';
import { ROOT } from './folders.js';
import type { Machine } from './machine.js';
import type { Result } from './part.js';

export const RESULTS = join(ROOT, 'bench', 'results');

/** A part that could not be measured, and why. */
export interface SkippedPart {
  readonly name: string;
  readonly because: string;
}

/** The parts of one day may have run on several machines. */
interface MeasuredResult extends Result {
  readonly at: string;
  readonly cpu: string;
}

interface DayRecord {
  /** The machine of the last run on that day. */
  readonly machine: Machine;
  readonly results: readonly MeasuredResult[];
  readonly skipped: readonly SkippedPart[];
}

/**
 * Adds results to those of the same day. A part that was run again replaces its figures. A part that could not run
 * keeps them. Draws the newest figures of each part.
 */
export function keep(
  results: readonly Result[],
  skipped: readonly SkippedPart[],
  machine: Machine,
  at: string,
): string {
  mkdirSync(RESULTS, { recursive: true });
  const path = join(RESULTS, `${at.slice(0, 10)}.json`);
  const before = existsSync(path) ? readDay(path) : undefined;
  const parts = new Set(results.map(partOf));
  const attempted = new Set([...parts, ...skipped.map(({ name }) => name)]);
  const day: DayRecord = {
    machine,
    results: [
      ...(before?.results ?? []).filter((result) => !parts.has(partOf(result))),
      ...results.map((result) => ({ ...result, at, cpu: machine.cpu })),
    ].sort(byName),
    skipped: [...(before?.skipped ?? []).filter(({ name }) => !attempted.has(name)), ...skipped].sort(byName),
  };
  writeFileSync(path, `${JSON.stringify(day, null, 1)}\n`);
  writeFileSync(join(RESULTS, 'latest.svg'), drawChart(newest()));
  return path;
}

/** The newest figure of each name from all days. */
function newest(): readonly MeasuredResult[] {
  const found = new Map<string, MeasuredResult>();
  for (const name of readdirSync(RESULTS)
    .filter((file) => /^\d{4}-\d\d-\d\d\.json$/.test(file))
    .sort()) {
    for (const result of readDay(join(RESULTS, name)).results) found.set(result.name, result);
  }
  return [...found.values()].sort(byName);
}

const readDay = (path: string): DayRecord => JSON.parse(readFileSync(path, 'utf8')) as DayRecord;
const partOf = ({ name }: { readonly name: string }): string => name.split('/')[0] as string;
const byName = (a: { readonly name: string }, b: { readonly name: string }): number =>
  a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
