import type { ChangeView } from '#libs/contracts';
import { changeView, cli, type CliResult } from '../fakes.fixture.js';

const MOTD = JSON.stringify({
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'File',
  metadata: { name: 'motd' },
  spec: { nodeSelector: {}, path: '/etc/motd', content: 'hello\n' },
});
const sluiceApply = (views: readonly ChangeView[], ...flags: string[]): Promise<CliResult> =>
  cli(['apply', '-f', '-', ...flags], { views: { changes: { c7: views } } }, {}, MOTD);

test('sluice apply shows what the review warns about, also if nobody waits for the end', async () => {
  const warning = {
    fragment: 'File/motd',
    field: '',
    code: 'selects-nothing',
    message: 'selects no node',
    nodes: [],
  };
  const reviewed = [
    changeView({ phase: 'accepted' }),
    changeView({ phase: 'rendered', warnings: [] }),
    changeView({ phase: 'validated', warnings: [warning] }),
  ];
  expect(await sluiceApply(reviewed)).toEqual({
    exit: 0,
    out: 'c7\n',
    err: 'published; follow it with sluice status c7 -w\n  ! File/motd: selects no node\n',
  });
  expect(await sluiceApply(reviewed, '-o', 'json')).toEqual({ exit: 0, out: '{"change":"c7"}\n', err: '' });
});

test('sluice apply says that the change was rejected if that is known at once, and exits with 3', async () => {
  const rejected = changeView({
    phase: 'rejected',
    reasons: [{ fragment: 'File/motd', field: '', code: 'known-bad', message: 'is known-bad', nodes: [] }],
  });
  expect(await sluiceApply([rejected])).toEqual({
    exit: 3,
    out: 'c7\n',
    err: 'published; follow it with sluice status c7 -w\nc7 was rejected:\n  ✖ File/motd: is known-bad\n',
  });
  expect(await sluiceApply([rejected], '-o', 'json')).toEqual({ exit: 3, out: '{"change":"c7"}\n', err: '' });
});
