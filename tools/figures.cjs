// Writes the newest figures of bench/results/ into README.md, between the two marks: nobody copies numbers by hand.
const { readdirSync, readFileSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');

const root = join(__dirname, '..');
const results = join(root, 'bench', 'results');
const [BEGIN, END] = ['<!-- figures -->', '<!-- /figures -->'];

const newest = new Map();
let machine;
for (const day of readdirSync(results)
  .filter((name) => /^\d{4}-\d\d-\d\d\.json$/.test(name))
  .sort()) {
  const record = JSON.parse(readFileSync(join(results, day), 'utf8'));
  machine = record.machine;
  for (const result of record.results) newest.set(result.name, { cpu: machine.cpu, ...result });
}

const rows = [...newest.values()]
  .filter(({ goal, name }) => goal !== '' || name === 'rollout-10k/least')
  .map(
    ({ name, value, unit, floor, ratio, goal, met, at }) =>
      `| \`${name}\` | ${value} ${unit} | ${floor ?? '–'} | ${ratio ?? '–'} | ${goal === '' ? '–' : goal} | ${met === null ? '–' : met ? '✔' : '✖'} | ${at.slice(0, 10)} |`,
  );
const table = [
  `On ${machine.cores} shared cores (${[...new Set([...newest.values()].map(({ cpu }) => cpu))].join('; ')}), Node.js ${machine.node}, nats-server ${machine.natsServer}; other work went on beside it, so the ratios count and not the seconds.`,
  '',
  '| | figure | floor of the same run | ÷ floor | goal | met | measured |',
  '|---|---|---|---|---|---|---|',
  ...rows,
].join('\n');

const path = join(root, 'README.md');
const text = readFileSync(path, 'utf8');
const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)];
if (from < 0 || to < from) throw new Error(`README.md has no ${BEGIN} … ${END}`);
writeFileSync(path, `${text.slice(0, from + BEGIN.length)}\n${table}\n${text.slice(to)}`);
