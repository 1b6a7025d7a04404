import { EMPTY_PLAN } from '../change/change-plan.js';
import { changeView, NOW, PLAIN } from '../fakes.fixture.js';
import { overview } from './overview.js';
import { planScreen } from './plan.js';

test('the overview cuts a long message between characters, not within one', () => {
  const change = changeView({ message: `${'a'.repeat(37)}🎉🎉 and more` });
  const shown = { changes: new Map([['c7', change]]), rollouts: new Map(), pools: new Map(), now: NOW };
  expect(overview(shown, PLAIN)).toContain(` ${'a'.repeat(37)}🎉…`);
});

test('a plan names the first places that change on a node, and how many more there are', () => {
  const changed = Array.from({ length: 3_000 }, (_, i) => `/etc/${i}`);
  const node = { node: 'n1', pool: 'edge', from: '', to: '', actions: [], changed };
  const lines = planScreen({ ...EMPTY_PLAN, nodes: [node] }, PLAIN).split('\n');
  expect(lines.find((line) => line.startsWith('  ~ '))).toMatch(/^ {2}~ \/etc\/0, .*, \/etc\/9 and 2990 more {3}none/);
});
