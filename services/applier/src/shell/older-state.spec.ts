import { cpSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { config, directory, file, Host, probe } from './applier-host.fixture.js';
import { EMPTY_HASH } from './index.js';

let host: Host;
beforeEach(() => {
  host = new Host();
});
afterEach(() => host.end());

/** The state folder as it is now, to be put back later. */
async function backUp(): Promise<() => Promise<void>> {
  await host.stop();
  const copy = `${host.state}.copy`;
  cpSync(host.state, copy, { recursive: true });
  await host.start();
  return async () => {
    await host.stop();
    rmSync(host.state, { recursive: true });
    renameSync(copy, host.state);
    await host.start();
    await host.bus.reported(({ hash, incarnation }) => hash === EMPTY_HASH && incarnation === 2);
  };
}
const FIRST = config(file('/made', 'ours'), file('/changed', 'ours'), directory('/folder'));
const WHY = 'because the state folder was lost or is an older copy';

describe('an applier whose state folder is replaced with an older copy', () => {
  it('says that it does not know what was there before Sluice, and does not call it restored', async () => {
    writeFileSync(host.path('changed'), 'mine');
    await host.start();
    const restore = await backUp();
    expect(await host.bus.roll(FIRST)).toMatchObject({ verdict: 'applied', reason: '' });
    await restore();
    const again = await host.bus.roll(config(...FIRST.fragments, file('/new', 'new')));
    expect(again).toMatchObject({ verdict: 'applied', changed: ['/new'] });
    expect(again.reason).toBe(`what was there before Sluice is not known any more at /folder, /changed, /made, ${WHY}`);
    const deleted = await host.bus.roll(config());
    expect(deleted).toMatchObject({ verdict: 'applied', hash: EMPTY_HASH });
    expect(deleted.reason).toMatch(
      /^left as it is: what was at \/folder before Sluice is not known, because .*; what was at \/changed before Sluice/,
    );
    expect(host.tree()).toEqual({ changed: '644 ours', folder: 'dir 755', made: '644 ours' });
  });

  it('restores what somebody has put there since, and what it did not know', async () => {
    await host.start();
    const restore = await backUp();
    expect(await host.bus.roll(FIRST)).toMatchObject({ verdict: 'applied' });
    writeFileSync(host.path('made'), 'edited');
    writeFileSync(host.path('other'), 'mine');
    await restore();
    expect(await host.bus.roll(config(file('/made', 'new'), file('/other', 'new')))).toMatchObject({
      verdict: 'applied',
      reason: '',
    });
    expect(await host.bus.roll(config())).toMatchObject({ verdict: 'applied', reason: '' });
    expect([readFileSync(host.path('made'), 'utf8'), readFileSync(host.path('other'), 'utf8')]).toEqual([
      'edited',
      'mine',
    ]);
  });

  it('rolls a failed change back to what was there', async () => {
    await host.start();
    const restore = await backUp();
    expect(await host.bus.roll(FIRST)).toMatchObject({ verdict: 'applied' });
    await restore();
    const before = host.tree();
    const fails = probe('p', { file: { path: '/made', matches: '^ours' } });
    expect(await host.bus.roll(config(file('/made', 'new'), fails))).toMatchObject({
      verdict: 'invalid',
      restored: true,
    });
    expect(host.tree()).toEqual(before);
    // It is still known then.
    expect((await host.bus.roll(FIRST)).reason).toContain('what was there before Sluice is not known any more at');
  });

  it('takes what is there as original if the config that it had does not exist any more', async () => {
    await host.start();
    const restore = await backUp();
    expect(await host.bus.roll(FIRST)).toMatchObject({ verdict: 'applied' });
    host.bus.expire(FIRST);
    await restore();
    expect(await host.bus.roll(config(file('/made', 'new')))).toMatchObject({ verdict: 'applied', reason: '' });
    expect(await host.bus.roll(config())).toMatchObject({ verdict: 'applied' });
    expect(readFileSync(host.path('made'), 'utf8')).toBe('ours');
  });
});
