import type { Result } from './part.js';
import type { SkippedPart } from './record.js';

/** The figures as a table, each with its floor and goal. */
export function drawTable(results: readonly Result[], skipped: readonly SkippedPart[]): string {
  const header = ['part', 'value', 'unit', 'floor', '÷ floor', 'goal', ''];
  const rows = results.map(({ name, value, unit, floor, ratio, goal, met }) => [
    name,
    String(value),
    unit,
    floor === null ? '–' : String(floor),
    ratio === null ? '–' : String(ratio),
    goal === '' ? '–' : goal,
    met === null ? '' : met ? 'met' : 'MISSED',
  ]);
  const widths = header.map((_, i) => Math.max(...[header, ...rows].map((row) => (row[i] as string).length)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, i) => cell.padEnd(widths[i] as number))
      .join('  ')
      .trimEnd();
  const notes = results.filter(({ note }) => note !== '').map(({ name, note }) => `  ${name}: ${note}`);
  return [
    line(header),
    ...rows.map(line),
    ...(notes.length > 0 ? ['', ...notes] : []),
    ...skipped.map(({ name, because }) => `  ${name}: skipped: ${because}`),
  ].join('\n');
}
