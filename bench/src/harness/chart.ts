import type { Result } from './part.js';

const [WIDTH, ROW, LEFT, TOP] = [860, 26, 250, 56];
const PLOT = 330;
/** Shows figures from a tenth of the goal to ten times the goal. Values outside are drawn at the edge. */
const DECADES = 1;

/**
 * Draws each figure that has a goal as its distance from the goal. Left of the line is better, even if higher values
 * are better.
 */
export function drawChart(results: readonly (Result & { readonly at: string })[]): string {
  const rows = results.filter(({ met }) => met !== null);
  const height = TOP + rows.length * ROW + 40;
  const dates = [...new Set(rows.map(({ at }) => at.slice(0, 10)))].sort();
  const goalX = LEFT + PLOT / 2;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    text(
      16,
      24,
      `Sluice: figures against their goals, ${[dates[0], dates.at(-1)].filter((date, i, all) => all.indexOf(date) === i).join(' to ')}`,
      'font-size="15" font-weight="600"',
    ),
    text(goalX, 46, 'goal', 'text-anchor="middle" fill="#555"'),
    text(LEFT, 46, '10× better', 'fill="#999" font-size="10"'),
    text(LEFT + PLOT, 46, '10× worse', 'text-anchor="end" fill="#999" font-size="10"'),
    ...rows.map((row, i) => drawRow(row, TOP + i * ROW, goalX)),
    `<line x1="${goalX}" y1="${TOP - 4}" x2="${goalX}" y2="${TOP + rows.length * ROW}" stroke="#333" stroke-dasharray="3 2"/>`,
    text(
      16,
      height - 14,
      'Logarithmic. Floors are raw JetStream calls, or the like, measured in the same run: npm run bench',
      'fill="#777" font-size="10"',
    ),
    '</svg>',
    '',
  ].join('\n');
}

function drawRow(row: Result, y: number, goalX: number): string {
  const distance = Math.max(-DECADES, Math.min(DECADES, Math.log10(worseBy(row)))) * (PLOT / 2 / DECADES);
  const [x, width] = distance < 0 ? [goalX + distance, -distance] : [goalX, distance];
  const colour = row.met === true ? '#2a7' : '#c43';
  const floor = row.ratio === null ? '' : `, floor ${row.floor} (× ${row.ratio})`;
  return [
    text(LEFT - 10, y + 15, row.name, 'text-anchor="end"'),
    `<rect x="${x.toFixed(1)}" y="${y + 4}" width="${Math.max(2, width).toFixed(1)}" height="${ROW - 10}" rx="2" fill="${colour}"/>`,
    text(LEFT + PLOT + 12, y + 15, `${row.value} ${row.unit}${floor}; ${row.goal}`, 'font-size="10" fill="#333"'),
  ].join('\n');
}

/** How many times worse than the goal. Below 1 is better. */
function worseBy({ value, ratio, goal }: Result): number {
  const [, sign, bound] = /([≥≤]) ([\d.]+)/.exec(goal) ?? [];
  const judged = goal.includes('× floor') ? (ratio ?? Number.NaN) : value;
  if (bound === undefined || !(judged > 0)) return 1;
  return sign === '≥' ? Number(bound) / judged : judged / Number(bound);
}

const text = (x: number, y: number, content: string, more = ''): string =>
  `<text x="${x}" y="${y}" ${more}>${content.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</text>`;
