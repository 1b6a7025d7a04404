import { DEMO, demo, everywhere, vmFile, VmScene } from './vm-scene.js';

const UNIT = `/etc/systemd/system/${DEMO}`;
/**
 * All that a change does to the disk and to systemd, in its order: the intent, files, a unit, what it no longer has,
 * its actions, the end.
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

/** A machine whose power is cut in the middle of changes; it has one that went well before the first. */
export class PowerCuts {
  readonly place = new VmScene();
  /** Counts all that were tried; what is on the node is one of them. */
  private tried = 0;
  private standing = 0;

  async open(): Promise<void> {
    await this.place.open();
    await this.place.commit(gate('/etc/machine-id', '.'));
    await this.isWhole(await this.change());
    await this.place.commit(gate('/etc/two', '^good'));
  }

  /** Writes two files and a unit, brings a file of its own, and takes away that of the one that stands there. */
  async change(isGood = true): Promise<string> {
    this.tried += 1;
    const files = ['one', 'two'].map((name) => vmFile(name, contentOf(this.tried, isGood)));
    return this.place.publish({
      apply: [...files, demo(1_000 + this.tried), vmFile(`of-${this.tried}`, '')],
      delete: this.standing === 0 ? [] : [{ kind: 'File', name: `of-${this.standing}` }],
    });
  }

  /** The same for every change. */
  general(point: string): string {
    return point.replace(`/etc/of-${this.tried}`, '/etc/new').replace(`/etc/of-${this.standing}`, '/etc/old');
  }

  /**
   * Whole is either all of the new one or all of the one before: what lies there, what runs, and what the ledger says.
   */
  async isWhole(id: string): Promise<void> {
    const { place } = this;
    const { phase } = await place.ended(id);
    await place.quiet();
    if (phase === 'committed') this.standing = this.tried;
    await place.comes(async () => (await place.unit(DEMO, 'ActiveState')) === 'active', 'the unit runs', 100_000);
    const lies = await place.vm.run(`cat /etc/one /etc/two; ls /etc | grep ^of-; ${place.argumentOf(DEMO)}`);
    expect(lies).toBe(`${contentOf(this.standing, true).repeat(2)}of-${this.standing}\n${1_000 + this.standing}`);
    expect((await place.journal()).work).toBeUndefined();
    place.pauses.clear();
  }

  /** Once the applier stands there. */
  async cutAt(id: string, what: string): Promise<void> {
    await this.place.pauses.reached(what);
    await this.place.cutAndBoot();
    await this.isWhole(id);
  }
}
