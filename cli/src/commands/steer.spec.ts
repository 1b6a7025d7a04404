import { cli } from '../fakes.fixture.js';

test.each([
  ['rolling', 'c9 paused: nodes that have a lease will finish; continue with sluice resume c9\n'],
  ['waiting', 'c9 paused before it started: it grants no leases until sluice resume c9\n'],
])('pause says what happens to a change that is %s', async (phase, err) => {
  const answers = { 'ops.rollout.pause': () => ({ change: 'c9', phase, paused: true, aborted: false }) };
  expect(await cli(['pause', 'c9'], { answers })).toEqual({ exit: 0, out: '', err });
});

describe('label', () => {
  test('sets labels, and removes those with a trailing dash', async () => {
    const requests: unknown[] = [];
    const answers = {
      'ops.node.label': (body: object) => (requests.push(body), { labels: { zone: 'b', role: 'edge' } }),
    };
    const { err } = await cli(['label', 'w-1', 'role=edge', 'note=a_b', 'empty=', 'rack-'], { answers });
    expect(requests).toEqual([
      { node: 'w-1', set: { role: 'edge', note: 'a_b', empty: '' }, remove: ['rack'], by: 'ada' },
    ]);
    expect(err).toBe('labels of w-1: role=edge,zone=b\n');
  });

  test.each([
    [['role'], '"role" is neither KEY=VALUE'],
    [['=edge'], '"=edge" is neither KEY=VALUE'],
    [['-'], '"-" is neither KEY=VALUE'],
    [['role=a', 'role-'], 'the label role is named twice'],
    [['note=a=b'], 'the value of the label note must be a label value as in Kubernetes: at most 63 letters'],
    [[`a=${'x'.repeat(64)}`], 'the value of the label a must be'],
    [['.com/a=b'], 'the key of the label ".com/a" must be a label key as in Kubernetes: at most 63 letters'],
    [[], "missing required argument 'label'"],
  ])('refuses %j', async (args, message) => {
    const { exit, err } = await cli(['label', 'w-1', ...args], {});
    expect([exit, err]).toEqual([2, expect.stringContaining(message)]);
  });
});

test.each([
  [true, 'w-1 is back in service\n'],
  [false, 'w-1 was not taken: there is nothing to give back\n'],
])('give says whether somebody had taken the node: %s', async (returned, err) => {
  const answers = { 'ops.pool.give': () => ({ node: 'w-1', pool: 'edge', owner: 'kured', taken: false, returned }) };
  expect(await cli(['give', 'w-1', '--owner', 'kured'], { answers })).toMatchObject({ exit: 0, err });
});
