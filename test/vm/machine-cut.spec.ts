import { until } from '#libs/testing';
import { describeWith } from '../e2e/needs.js';
import { DEMO, demo, everywhere, vmFile, VmScene } from './vm-scene.js';

jest.setTimeout(900_000);

const UNIT = `/etc/systemd/system/${DEMO}`;
/** All that a change does to the disk and to systemd, in its order: the intent, files, a unit, what it no longer has, its actions, the end. */
const FORWARD = [
  'before journal forward', 'after journal forward', 'before write /etc/new', 'after write /etc/new', 'before write /etc/one', 'after write /etc/one', 'before write /etc/two', 'after write /etc/two',
  `before write ${UNIT}`, `after write ${UNIT}`, 'before remove /etc/old', 'after remove /etc/old', 'before systemctl daemon-reload', 'after systemctl daemon-reload',
  `before systemctl restart -- ${DEMO}`, `after systemctl restart -- ${DEMO}`, 'before journal none', 'after journal none',
];
const BACK = [
  'before journal going-back', 'after journal going-back', 'after write /etc/one', `after write ${UNIT}`, `before systemctl restart -- ${DEMO}`, 'before journal none', 'after journal none',
];
const RESTART = ['before systemctl reboot', 'before journal confirming', 'after journal confirming'];

describeWith(['vm-long'], 'a machine whose power is cut', () => {
  const place = new VmScene();
  /** Counts all that were tried; what is on the node is one of them. */
  let [tried, standing] = [0, 0];
  const contentOf = (number: number, isGood: boolean): string => `${isGood ? 'good' : 'bad'} ${number}\n`;
  /** Writes two files and a unit, brings a file of its own, and takes away that of the one that stands there. */
  async function change(isGood = true): Promise<string> {
    tried += 1;
    const files = ['one', 'two'].map((name) => vmFile(name, contentOf(tried, isGood)));
    return place.publish({ apply: [...files, demo(1_000 + tried), vmFile(`of-${tried}`, '')], delete: standing === 0 ? [] : [{ kind: 'File', name: `of-${standing}` }] });
  }
  const general = (point: string): string => point.replace(`/etc/of-${tried}`, '/etc/new').replace(`/etc/of-${standing}`, '/etc/old');

  /** Whole is either all of the new one or all of the one before: what lies there, what runs, and what the ledger says. */
  async function isWhole(id: string): Promise<void> {
    const { phase } = await place.ended(id);
    await place.quiet();
    if (phase === 'committed') standing = tried;
    await until(async () => (await place.unit(DEMO, 'ActiveState')) === 'active', 'the unit runs');
    expect(await place.vm.run(`cat /etc/one /etc/two; ls /etc | grep ^of-; ${place.argumentOf(DEMO)}`)).toBe(`${contentOf(standing, true).repeat(2)}of-${standing}\n${1_000 + standing}`);
    expect((await place.journal()).work).toBeUndefined();
    place.pauses.clear();
  }

  async function cutAt(id: string, what: string): Promise<void> {
    await place.pauses.reached(what);
    await place.cutAndBoot();
    await isWhole(id);
  }

  beforeAll(async () => {
    await place.open();
    await place.commit(everywhere('Probe', 'gate', { file: { path: '/etc/machine-id', matches: '.' }, retries: 0, timeout: '5s' }));
    await isWhole(await change());
    await place.commit(everywhere('Probe', 'gate', { file: { path: '/etc/two', matches: '^good' }, retries: 0, timeout: '5s' }));
  });
  afterAll(() => place.close());

  test('does in a change what is cut below, and nothing else', async () => {
    place.pauses.clear();
    const id = await change();
    expect(await place.ended(id)).toMatchObject({ phase: 'committed' });
    const passed = place.pauses.passed.map(general);
    expect([...new Set(passed)].toSorted()).toEqual(FORWARD.toSorted());
    await isWhole(id);
  });

  test.each(FORWARD)('on the way forward %s', async (point) => {
    place.pauses.hold((passed) => general(passed) === point);
    await cutAt(await change(), point);
  });

  test.each(BACK)('on the way back %s', async (point) => {
    place.pauses.hold((passed) => passed === point && (point.endsWith('going-back') || place.pauses.passed.includes('after journal going-back')));
    await cutAt(await change(false), `${point} on the way back`);
  });

  test.each(RESTART)('around a restart of its own, %s', async (point) => {
    await place.commit(everywhere('DisruptionPolicy', 'boot', { files: [{ path: '/etc/two', actions: [{ kind: 'reboot' }] }] }));
    place.pauses.hold((passed) => passed === point);
    await cutAt(await change(), point);
    expect(await place.delete(everywhere('DisruptionPolicy', 'boot', {}))).toMatchObject({ phase: 'committed' });
  });
});
