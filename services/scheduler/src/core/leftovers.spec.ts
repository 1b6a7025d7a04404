import { committed } from '#libs/testing';
import { Scheduler } from './scheduler.fixture.js';

const LEFT = ['KubeObjects/web: Thing/x: it is still being deleted'];

it('a target says what it has left of what was deleted, and takes that back', () => {
  const s = new Scheduler().fleet(['n0']);
  s.rolls('c1', ['n0']);
  s.leaseEnds('n0', 'applied', { hash: s.lease('n0').hash, leftovers: LEFT });
  expect(s.status('n0').leftovers).toEqual(LEFT);
  s.given(committed('c1'));
  s.when();
  expect(s.why('n0')).toMatchObject({
    because: 'leftovers',
    text: `it has its config, but what was deleted is still there: ${LEFT.join()}`,
  });
  s.nodeReports('n0', s.status('n0').hash);
  expect([s.status('n0').leftovers, s.why('n0').because]).toEqual([[], 'up-to-date']);
});
