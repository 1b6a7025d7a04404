import { ACTION_KINDS, type Action, type Config, type ConfigEntry } from '#libs/contracts';
import type { Item, Refusal } from '../../core/index.js';
import { runCommand } from '../command.js';
import type { Host } from './host.js';
import { restsAfter } from './systemd.js';

/** Actions that need nothing from the node: the drain service has drained it before the lease was ready. */
const FREE: readonly string[] = ['none', 'drain'];
const RESET_MS = 10_000;

/** Takes actions on this machine. */
export class Actor {
  constructor(private readonly host: Host) {}

  /**
   * Why an action cannot be taken here. Changes nothing. An unknown action of another version passes: it will fail, and
   * escalate.
   */
  async refusals(actions: readonly Action[], config: Config, leftMs: () => number): Promise<readonly Refusal[]> {
    const refusals: Refusal[] = [];
    for (const { kind, unit = '' } of actions) {
      if (FREE.includes(kind) || !ACTION_KINDS.includes(kind)) continue;
      if (!this.host.capabilities.includes(`action:${kind}`))
        refusals.push(node(`this node does not support action ${kind}${unit === '' ? '' : ` of ${unit}`}`));
      else if (unit !== '' && !makes(config, unit)) refusals.push(...(await this.unitRefusals(kind, unit, leftMs())));
    }
    return refusals;
  }

  private async unitRefusals(kind: string, unit: string, leftMs: number): Promise<readonly Refusal[]> {
    try {
      const properties = await this.host.systemd?.show(unit, leftMs);
      return properties?.load === 'not-found' ? [node(`action ${kind}: there is no unit ${unit}`)] : [];
    } catch (error) {
      return [node(`action ${kind} of ${unit}: systemctl show: ${(error as Error).message}`)];
    }
  }

  /** The units of these actions and entries that neither run nor have failed. */
  async idleUnits(
    actions: readonly Action[],
    entries: readonly ConfigEntry[],
    leftMs: () => number,
  ): Promise<readonly string[]> {
    const { systemd } = this.host;
    const own = entries.flatMap(({ kind, spec }) => (kind === 'SystemdUnit' ? String(spec['name']) : []));
    const units = new Set([...actions.flatMap(({ unit }) => unit ?? []), ...own]);
    const idle: string[] = [];
    for (const unit of systemd === undefined ? [] : units) {
      // Nothing depends on a unit that systemd does not show now.
      if (leftMs() <= 0) break;
      const state = await systemd?.show(unit, leftMs()).catch(() => undefined);
      if (state?.active === 'inactive' && !state.isQueued) idle.push(unit);
    }
    return idle;
  }

  /** Lets systemd forget that these units have failed. */
  async resetFailed(units: readonly string[]): Promise<void> {
    for (const unit of units) {
      const { active } = await this.systemd().show(unit);
      if (active === 'failed') await this.systemd().tell('reset-failed', unit, RESET_MS);
    }
  }

  /** Takes one action, after these items were applied. Throws if it fails or the time is over. */
  async act({ kind, unit = '' }: Action, items: readonly Item[], timeoutMs: number): Promise<void> {
    switch (kind) {
      case 'none':
      case 'drain':
        return;
      case 'daemon-reload':
        return this.systemd().daemonReload(timeoutMs);
      case 'reload':
      case 'restart':
        return this.tell(kind, unit, items, timeoutMs);
      case 'reboot':
        return this.reboot(timeoutMs);
      default:
        throw new Error(`this applier does not support action ${String(kind)}`);
    }
  }

  /** Throws if the unit has failed. */
  async readUnit(unit: string, leftMs: number): Promise<void> {
    const { active, result } = await this.systemd().show(unit, leftMs);
    if (active === 'failed') throw new Error(`${unit} has failed (${result})`);
  }

  private async tell(
    kind: 'reload' | 'restart',
    unit: string,
    items: readonly Item[],
    timeoutMs: number,
  ): Promise<void> {
    if (restsAfter(items, unit)) return;
    const { load, active } = await this.systemd().show(unit, timeoutMs);
    // The unit existed before: this change or rollback removed it.
    if (load === 'not-found') return;
    // A unit that does not run reads its files when it starts. A failed unit cannot be reloaded.
    if (kind === 'reload' && active === 'inactive') return;
    return this.systemd().tell(kind === 'reload' && active === 'failed' ? 'restart' : kind, unit, timeoutMs);
  }

  /** The command only requests the reboot. The boot id shows that it has happened. */
  private async reboot(timeoutMs: number): Promise<void> {
    const { rebootCommand, root, ending } = this.host;
    if (rebootCommand.length === 0) throw new Error('this node has no reboot command');
    const { passed, reason } = await runCommand(rebootCommand, { root, timeoutMs, ending });
    if (!passed) throw new Error(reason);
  }

  private systemd() {
    if (this.host.systemd === undefined) throw new Error('this machine does not run systemd');
    return this.host.systemd;
  }
}

/** Whether the config itself contains the unit. */
const makes = (config: Config, unit: string): boolean =>
  config.fragments.some(
    ({ kind, spec }) =>
      (kind === 'SystemdUnit' && spec['name'] === unit) ||
      (kind === 'File' && typeof spec['path'] === 'string' && spec['path'].endsWith(`/${unit}`)),
  );

const node = (reason: string): Refusal => ({ fault: 'node', reason });
