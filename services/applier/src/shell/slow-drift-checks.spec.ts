import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { until } from '#libs/testing';
import { config, file, Host } from './applier-host.fixture.js';

let host: Host;
beforeEach(() => {
  host = new Host();
});
afterEach(() => host.end());

/** Its check hangs while `hang` exists, and notes its process. */
const command = (name: string) => ({
  kind: 'Exec',
  name,
  spec: {
    check: { argv: ['sh', '-c', `[ ! -e hang ] || { echo $$ >> hung; exec sleep 1000; }`] },
    apply: { argv: ['true'] },
  },
});
const hung = (): readonly number[] =>
  existsSync(host.path('hung')) ? readFileSync(host.path('hung'), 'utf8').trim().split('\n').map(Number) : [];
const runs = (pid: number): boolean => existsSync(`/proc/${pid}`);

it('a lease ends a drift check whose commands hang, and waits for none of them', async () => {
  await host.start({ allowExec: true, driftCheckMs: 50 });
  const commands = ['a', 'b', 'c'].map(command);
  expect(await host.bus.roll(config(...commands))).toMatchObject({ verdict: 'applied' });
  writeFileSync(host.path('hang'), '');
  const [first = NaN] = await until(() => (hung().length > 0 ? hung() : undefined), 'a check that hangs');
  expect(await host.bus.roll(config(file('/etc/new', 'new')))).toMatchObject({ verdict: 'applied' });
  expect(hung()).toEqual([first]);
  expect(runs(first)).toBe(false);
});

it('an applier that is stopped ends a drift check, too', async () => {
  await host.start({ allowExec: true, driftCheckMs: 50 });
  expect(await host.bus.roll(config(...['a', 'b', 'c'].map(command)))).toMatchObject({ verdict: 'applied' });
  writeFileSync(host.path('hang'), '');
  const [first = NaN] = await until(() => (hung().length > 0 ? hung() : undefined), 'a check that hangs');
  await host.stop();
  expect([hung(), runs(first)]).toEqual([[first], false]);
});

it('what a drift check would have found is found after the lease', async () => {
  await host.start({ allowExec: true, driftCheckMs: 50 });
  expect(await host.bus.roll(config(command('a'), file('/etc/x', 'x')))).toMatchObject({ verdict: 'applied' });
  writeFileSync(host.path('hang'), '');
  await until(() => hung()[0], 'a check that hangs');
  writeFileSync(host.path('etc/x'), 'edited');
  rmSync(host.path('hang'));
  const wanted = config(command('a'), file('/etc/x', 'x'), file('/etc/y', 'y'));
  expect(await host.bus.roll(wanted, { drift: { differences: [], overwrite: true } })).toMatchObject({
    kind: 'drifted',
    differences: ['/etc/x: content differs'],
  });
});
