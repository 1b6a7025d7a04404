import { PLAIN } from '../fakes.fixture.js';
import { reasonLines } from './reasons.js';

test('shows the first of very many reasons, and counts the others', () => {
  const reasons = Array.from({ length: 53 }, (_, index) => ({
    fragment: `File/f${index}`,
    field: 'spec',
    code: 'x',
    message: `wrong ${index}`,
    nodes: [],
  }));
  const lines = reasonLines(reasons, PLAIN);
  expect([lines.length, lines[49], lines[50]]).toEqual([51, '  ✖ File/f49: wrong 49', '  3 more; -o json has all']);
});

test('a reason that names only some of its nodes says how many there are besides', () => {
  const reason = (message: string, ...nodes: readonly string[]) => ({
    fragment: '',
    field: '',
    code: 'x',
    message,
    nodes,
  });
  const lines = reasonLines(
    [
      reason('5 nodes are deferred', 'n1', 'n2', 'n3'),
      reason('it is wrong (on 6 nodes)', 'n1', 'n2'),
      reason('3 nodes are deferred', 'n1', 'n2', 'n3'),
    ],
    PLAIN,
  );
  expect(lines).toEqual([
    '  ✖ 5 nodes are deferred (n1, n2, n3 and 2 more)',
    '  ✖ it is wrong (on 6 nodes) (n1, n2 and 4 more)',
    '  ✖ 3 nodes are deferred (n1, n2, n3)',
  ]);
});
