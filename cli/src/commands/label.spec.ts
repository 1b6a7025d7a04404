import { cli } from '../fakes.fixture.js';

describe('label', () => {
  test('sets labels, and removes those with a dash at the end', async () => {
    const asked: unknown[] = [];
    const answers = { 'ops.node.label': (body: object) => (asked.push(body), { labels: { zone: 'b', role: 'edge' } }) };
    const { err } = await cli(['label', 'w-1', 'role=edge', 'note=a=b', 'empty=', 'rack-'], { answers });
    expect(asked).toEqual([
      { node: 'w-1', set: { role: 'edge', note: 'a=b', empty: '' }, remove: ['rack'], by: 'ada' },
    ]);
    expect(err).toBe('labels of w-1: role=edge,zone=b\n');
  });

  test.each([
    [['role'], '"role" is neither KEY=VALUE'],
    [['=edge'], '"=edge" is neither KEY=VALUE'],
    [['-'], '"-" is neither KEY=VALUE'],
    [['role=a', 'role-'], 'the label role is named twice'],
    [[], "missing required argument 'label'"],
  ])('refuses %j', async (words, message) => {
    const { exit, err } = await cli(['label', 'w-1', ...words], {});
    expect([exit, err]).toEqual([2, expect.stringContaining(message)]);
  });
});
