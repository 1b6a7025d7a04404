import {
  correctedDrift,
  driftOutlook,
  isDriftKept,
  isDriftOf,
  isOverwritten,
  isRefusedDrift,
  refusedDrift,
} from './drift.js';

test.each([
  ['/etc/motd: content differs', true],
  ['/etc/motd: missing', true],
  ['app.service: /etc/systemd/system/app.service: content differs', true],
  ['app.service: is disabled instead of enabled', true],
  ['vm.swappiness: is 60 instead of 10', true],
  ['… and 7 more', true],
  ['app.service: is failed instead of started', false],
  ['app.service: is active instead of stopped', false],
  ['Exec/ready: check: it ended with 1', false],
  ['KernelArguments/a: the kernel runs without quiet', false],
  ['/etc/motd: cannot be read: EIO: i/o error', false],
  [refusedDrift('/etc/motd: is a directory', 'it is not empty'), true],
  [refusedDrift('app.service: is failed instead of started', 'no'), false],
])('whether correcting %j overwrites a manual change: %s', (difference, expected) => {
  expect(isOverwritten(difference)).toBe(expected);
});

describe('drift that the node refuses to correct', () => {
  const EDITED = '/a: content differs';
  const REFUSED = refusedDrift('/b: is a directory', 'a directory that is not empty is in the way');

  test('is told apart from what a lease corrects', () => {
    expect(REFUSED).toBe('/b: is a directory, and cannot be corrected: a directory that is not empty is in the way');
    expect([isRefusedDrift(EDITED), isRefusedDrift(REFUSED), correctedDrift([EDITED, REFUSED])]).toEqual([
      false,
      true,
      [EDITED],
    ]);
    expect(isDriftKept('report', { differences: [REFUSED], restored: true })).toBe(true);
  });

  test.each([
    ['report', [EDITED], 'changes are deferred until it is undone, or the pool has drift: overwrite'],
    ['report', [REFUSED], 'changes are deferred until it is undone; the node cannot correct it: undo it on the node'],
    ['overwrite', [EDITED], 'the next change of the node overwrites it'],
    ['overwrite', [REFUSED], 'the node cannot correct it: undo it on the node'],
    ['repair', [EDITED], 'it is repaired within the budget of the pool'],
    ['repair', [REFUSED], 'the node cannot correct it: undo it on the node'],
    [
      'repair',
      [EDITED, REFUSED],
      'it is repaired within the budget of the pool; the node cannot correct all of it: undo it on the node',
    ],
  ] as const)('with drift: %s, what happens next to %j', (setting, differences, outlook) => {
    expect(driftOutlook(setting, differences)).toBe(outlook);
  });
});

test('finds the place of a difference whose path has a line break', () => {
  expect(isDriftOf('/etc/a b: missing', '/etc/a\nb')).toBe(true);
  expect(isDriftOf('/etc/a b: missing', '/etc/a')).toBe(false);
});
