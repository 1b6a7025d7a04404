import { nodeView, NOW, PLAIN } from '../fakes.fixture.js';
import { fleetTable } from './fleet-tables.js';

test('the table of nodes says who has skipped one, except for the scheduler, which skips silent ones', () => {
  const rows = ['ada', 'scheduler', ''].map((skipped, i) => ({ ...nodeView(`w-${i}`), deferred: 'silent', skipped }));
  const states = fleetTable('nodes', rows, NOW, PLAIN)
    .split('\n')
    .slice(1)
    .map((line) => /^w-\d +(.+?)  /.exec(line)?.[1]);
  expect(states).toEqual(['ready,deferred,skipped by ada', 'ready,deferred', 'ready,deferred']);
});
