import { DEMO, demo, everywhere, vmFile, VmScene } from './vm-scene.js';

const UNIT = `/etc/systemd/system/${DEMO}`;
/**
 * Everything that a change does to the disk and to systemd, in order: the intent, files, a unit, the removal of what it
 * no longer has, its actions, the end.
 */
export const FORWARD = [
  'before journal forward',
  'after journal forward',
  'before write /etc/new',
  'after write /etc/new',
  'before write /etc/one',
  'after write /etc/one',
  'before write /etc/two',
  'after write /etc/two',
  `before write ${UNIT}`,
  `after write ${UNIT}`,
  'before remove /etc/old',
  'after remove /etc/old',
  'before systemctl daemon-reload',
  'after systemctl daemon-reload',
  `before systemctl restart -- ${DEMO}`,
  `after systemctl restart -- ${DEMO}`,
  'before journal none',
  'after journal none',
];
export const BACK = [
  'before journal rolling-back',
  'after journal rolling-back',
  'after write /etc/one',
  `after write ${UNIT}`,
  `before systemctl restart -- ${DEMO}`,
  'before journal none',
  'after journal none',
];
export const RESTART = ['before systemctl reboot', 'before journal confirming', 'after journal confirming'];

const gate = (path: string, matches: string) =>
  everywhere('Probe', 'gate', { file: { path, matches }, retries: 0, timeout: '5s' });
const contentOf = (number: number, isGood: boolean): string => `${isGood ? 'good' : 'bad'} ${number}\n`;

/** A machine whose power is cut in the middle of changes. One change has succeeded before the first cut. */
export class PowerCuts {
  readonly place = new VmScene();
  /** The number of changes that were tried. The node has the content of one of them. */
  private changeCount = 0;
  private current = 0;

  async open(): Promise<void> {
    await this.place.open();
    await this.place.commit(gate('/etc/machine-id', '.'));
    await this.isWhole(await this.change());
    await this.place.commit(gate('/etc/two', '^good'));
  }

  /** Writes two files and a unit, adds a new file, and removes the file of the current version. */
  async change(isGood = true): Promise<string> {
    this.changeCount += 1;
    const files = ['one', 'two'].map((name) => vmFile(name, contentOf(this.changeCount, isGood)));
    return this.place.publish({
      apply: [...files, demo(1_000 + this.changeCount), vmFile(`of-${this.changeCount}`, '')],
      delete: this.current === 0 ? [] : [{ kind: 'File', name: `of-${this.current}` }],
    });
  }

  /** The point in a form that is the same for every change. */
  general(point: string): string {
    return point.replace(`/etc/of-${this.changeCount}`, '/etc/new').replace(`/etc/of-${this.current}`, '/etc/old');
  }

  /**
   * Everything belongs to either the new version or the previous one: the files, what runs, and what the ledger says.
   */
  async isWhole(id: string): Promise<void> {
    const { place } = this;
    const { phase } = await place.ended(id);
    await place.quiet();
    if (phase === 'committed') this.current = this.changeCount;
    await place.comes(async () => (await place.unit(DEMO, 'ActiveState')) === 'active', 'the unit runs', 100_000);
    const content = await place.vm.run(`cat /etc/one /etc/two; ls /etc | grep ^of-; ${place.argumentOf(DEMO)}`);
    expect(content).toBe(`${contentOf(this.current, true).repeat(2)}of-${this.current}\n${1_000 + this.current}`);
    expect((await place.journal()).work).toBeUndefined();
    place.pauses.clear();
  }

  /** Cuts the power as soon as the applier is held. */
  async cutAt(id: string, what: string): Promise<void> {
    await this.place.pauses.reached(what);
    await this.place.cutAndBoot();
    await this.isWhole(id);
  }
}
