import type { Action } from './facts.js';
import { decodeView, encodeView, WireError } from './wire.js';
import type { LeaseView } from './views.js';

const lease = (actions: readonly object[]): string => encodeView('leases', {
  ledger: 1, node: 'n', pool: 'default', lease: 'l1', change: 'c1', kind: 'forward', phase: 'ready', hash: '', from: '', actions: actions as readonly Action[],
  applyMs: 1, drainMs: 0, because: '', reason: '', grantedAt: '', settledAt: '',
} satisfies LeaseView);

test.each<[string, readonly object[], readonly object[]]>([
  ['the actions of a lease stay as they are', [{ kind: 'drain' }, { kind: 'restart', unit: 'a' }], [{ kind: 'drain' }, { kind: 'restart', unit: 'a' }]],
  ['an action of a later version is a reboot', [{ kind: 'kexec' }], [{ kind: 'reboot' }]],
  ['it stands alone but for the drain', [{ kind: 'drain' }, { kind: 'kexec' }, { kind: 'restart', unit: 'a' }], [{ kind: 'drain' }, { kind: 'reboot' }]],
])('%s', (_name, sent, read) => {
  expect(decodeView('leases', lease(sent)).actions.map(({ kind, unit }) => (unit === undefined || unit === '' ? { kind } : { kind, unit }))).toEqual(read);
});

test('a phase of a later version is refused, for nobody knows what it asks', () => {
  expect(() => decodeView('leases', lease([]).replace('"ready"', '"thawing"'))).toThrow(WireError);
});
