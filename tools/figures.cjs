// Writes the newest figures of bench/results: all of them into docs/design/scaling.md, five into README.md. Each page
// has two markers, and the text between them is replaced.
const { execFileSync } = require('node:child_process');
const { readdirSync, readFileSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');

const root = join(__dirname, '..');
const results = join(root, 'bench', 'results');
const [BEGIN, END] = ['<!-- figures -->', '<!-- /figures -->'];
/** The figures that operators ask for first. */
const FIVE = [
  ['rollout-10k', 'Rollout over 10,000 nodes that answer at once, 100 at a time'],
  ['failover', 'Pause in a rollout after `kill -9` of the leading scheduler'],
  ['idle-cpu', 'CPU of the whole control plane while 10,000 nodes idle'],
  ['rss/applier', 'Memory of an applier'],
  ['peer/time', 'One file and one check on 100 nodes, compared with Ansible'],
];

const newest = new Map();
for (const day of readdirSync(results)
  .filter((name) => /^\d{4}-\d\d-\d\d\.json$/.test(name))
  .sort()) {
  const record = JSON.parse(readFileSync(join(results, day), 'utf8'));
  for (const result of record.results) newest.set(result.name, { ...record.machine, ...result });
}
/** Figures of different days may come from different versions. Then all versions are named. */
function where(results) {
  const all = (field) => [...new Set(results.map((result) => result[field]))].join(' and ');
  return `${all('cores')} shared cores (${all('cpu')}), Node.js ${all('node')}, nats-server ${all('natsServer')}`;
}

write('docs/design/scaling.md', [
  `Measured on ${where([...newest.values()])}.`,
  '',
  '| | figure | floor of the same run | ÷ floor | goal | met | measured |',
  '|---|---|---|---|---|---|---|',
  ...[...newest.values()]
    .filter(({ goal, name }) => goal !== '' || name === 'rollout-10k/least')
    .map(
      ({ name, value, unit, floor, ratio, goal, met, at }) =>
        `| \`${name}\` | ${value} ${unit} | ${floor ?? '–'} | ${ratio ?? '–'} | ${goal === '' ? '–' : goal} | ${met === null ? '–' : met ? '✔' : '✖'} | ${at.slice(0, 10)} |`,
    ),
]);
write('README.md', [
  '| What | Figure |',
  '|---|---|',
  ...FIVE.map(([name, title]) => {
    const { value, unit } = newest.get(name);
    return `| ${title} | ${Number(value.toPrecision(2))} ${unit} |`;
  }),
  '',
  `On ${where(FIVE.map(([name]) => newest.get(name)))}.`,
]);
execFileSync('npx', ['oxfmt', 'README.md', 'docs/design/scaling.md'], { cwd: root, stdio: 'inherit' });

function write(page, lines) {
  const path = join(root, page);
  const text = readFileSync(path, 'utf8');
  const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`${page} has no ${BEGIN} … ${END}`);
  writeFileSync(path, `${text.slice(0, from + BEGIN.length)}\n\n${lines.join('\n')}\n\n${text.slice(to)}`);
}
