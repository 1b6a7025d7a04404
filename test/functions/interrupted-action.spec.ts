import { functionTarget } from '../../services/applier/src/shell/targets/index.js';
import type { TargetStorage } from '../../services/applier/src/shell/targets/target-storage.js';
import { FunctionStandIn } from '../../cli/src/demo/functions/stand-in.js';

const OWNED = { fence: () => Promise.resolve(10_000) } as unknown as TargetStorage;
const nothing = (): void => undefined;

// A rollback tells a service for up to 90 seconds. With a new password, address or pod, the target is opened again once
// the step has ended, and is not served before that.
test.each([
  ['is refused again and again', { password: 'new' }, 0],
  ['is not answered', {}, 60_000],
])('an action that %s ends at once if its target is opened again', async (_how, options, delayMs) => {
  const replica = await FunctionStandIn.start(options);
  replica.troubles.delayMs = delayMs;
  const target = functionTarget(
    { name: 'cnf-a', labels: {}, baseUrl: replica.baseUrl, user: 'root', password: 'secret' },
    { clock: () => performance.now(), checkMs: 60_000 },
  );
  const opened = await target.open(OWNED, nothing, nothing);
  const acted = opened.site.act({ kind: 'restart', unit: 'mwan3' }, [], 90_000).then(
    () => 'done',
    () => 'ended',
  );
  setTimeout(() => opened.interrupt?.(), 200);
  const late = new Promise((resolve) => setTimeout(() => resolve('late'), 3_000).unref());
  expect(await Promise.race([acted, late])).toBe('ended');
  opened.reach.stop();
  await opened.close();
  await replica.close();
});
