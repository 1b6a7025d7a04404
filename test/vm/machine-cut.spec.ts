import { until } from '#libs/testing';
import { describeWith } from '../e2e/needs.js';
import { DEMO, demo, everywhere, vmFile, VmScene } from './vm-scene.js';

jest.setTimeout(900_000);

const UNIT = `/etc/systemd/system/${DEMO}`;
/** All that a change does to the disk and to systemd, in its order: two journals, files, a unit, its actions, the last journal. */
const FORWARD = [
  'before journal forward', 'after journal forward', 'before write /etc/one', 'after write /etc/one', 'before write /etc/two', 'after write /etc/two',
  `before write ${UNIT}`, `after write ${UNIT}`, 'before remove /etc/odd', 'after remove /etc/odd', 'before systemctl daemon-reload', 'after systemctl daemon-reload',
  `before systemctl restart -- ${DEMO}`, `after systemctl restart -- ${DEMO}`, 'before journal none', 'after journal none',
];
const BACK = [
  'after journal going-back', 'after write /etc/one', `after write ${UNIT}`, `before systemctl restart -- ${DEMO}`, 'before journal none', 'after journal none',
];

describeWith(['vm-long'], 'a machine whose power is cut', () => {
  const place = new VmScene();
  let generation = 0;
  /** What stands there, and runs. */
  const standing = (): Promise<string> => place.vm.run(`cat /etc/one /etc/two; cat /etc/odd 2>/dev/null; ${place.argumentOf(DEMO)}`);
  const whole = (number: number): string => `${number}\n${number}\n${number % 2 === 1 ? 'odd\n' : ''}${1_000 + number}`;
  const parts = (number: number, more: object = {}) => ({
    apply: [vmFile('one', `${number}\n`), vmFile('two', `${number}\n`), demo(1_000 + number), ...(number % 2 === 1 ? [vmFile('odd', 'odd\n')] : [])],
    ...(number % 2 === 1 ? {} : { delete: [{ kind: 'File', name: 'odd' }] }), ...more,
  });
  /** An odd one, so that the next change removes a file, writes two, and restarts a unit. */
  async function settle(): Promise<number> {
    generation += 1 + (generation % 2);
    expect(await place.ended(await place.publish(parts(generation)))).toMatchObject({ phase: 'committed' });
    return generation;
  }
  async function isWhole(before: number, after: number, change: string): Promise<void> {
    const { phase } = await place.ended(change);
    await place.quiet();
    await until(async () => (await place.unit(DEMO, 'ActiveState')) === 'active', 'the unit runs');
    expect(await standing()).toBe(whole(phase === 'committed' ? after : before));
    expect((await place.journal()).work).toBeUndefined();
  }

  beforeAll(() => place.open());
  afterAll(() => place.close());

  test('does in a change what is cut below, and nothing else', async () => {
    await settle();
    place.pauses.clear();
    expect(await place.ended(await place.publish(parts(++generation)))).toMatchObject({ phase: 'committed' });
    await place.quiet();
    expect([...new Set(place.pauses.passed)].toSorted()).toEqual(FORWARD.toSorted());
    expect(await standing()).toBe(whole(generation));
  });

  test.each(FORWARD)('on the way forward %s', async (point) => {
    const before = await settle();
    place.pauses.hold((passed) => passed === point);
    const change = await place.publish(parts(++generation));
    await place.pauses.reached(point);
    await place.cutAndBoot();
    await isWhole(before, generation, change);
  });

  test.each(BACK)('on the way back %s', async (point) => {
    const before = await settle();
    const gate = everywhere('Probe', 'gate', { file: { path: '/etc/two', matches: '[13579]\n$' }, retries: 0, timeout: '5s' });
    await place.commit(gate);
    place.pauses.hold((passed) => passed === point && place.pauses.passed.includes('after journal going-back'));
    const change = await place.publish(parts(++generation));
    await place.pauses.reached(`${point} on the way back`);
    await place.cutAndBoot();
    expect(await place.ended(change)).toMatchObject({ phase: 'ended', outcome: 'reverted' });
    await isWhole(before, generation, change);
    expect(await place.delete(gate)).toMatchObject({ phase: 'committed' });
  });

  test.each(['before systemctl reboot', 'after journal confirming'])('around a restart of its own, %s', async (point) => {
    const before = await settle();
    await place.commit(everywhere('DisruptionPolicy', 'boot', { files: [{ path: '/etc/two', actions: [{ kind: 'reboot' }] }] }));
    place.pauses.hold((passed) => passed === point);
    const change = await place.publish(parts(++generation));
    await place.pauses.reached(point);
    await place.cutAndBoot();
    await isWhole(before, generation, change);
    expect(await place.delete(everywhere('DisruptionPolicy', 'boot', {}))).toMatchObject({ phase: 'committed' });
  });
});
