import { isOverwritten } from './drift.js';

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
])('whether correcting %j overwrites a manual change: %s', (difference, expected) => {
  expect(isOverwritten(difference)).toBe(expected);
});
