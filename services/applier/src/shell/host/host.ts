import { existsSync, accessSync, constants } from 'node:fs';
import { Systemd } from './systemd.js';

/**
 * Which programs and folders of its machine an applier works with. What is left out is looked for where the root is the
 * machine's own.
 */
export interface HostSettings {
  /** The program `systemctl`; where it answers, units can be reloaded and restarted. */
  readonly systemctl?: string | undefined;
  /** The program `systemd-analyze`, which says whether a unit parses. */
  readonly systemdAnalyze?: string | undefined;
  /** What restarts the machine, instead of `systemctl reboot`; an empty list: nothing may. */
  readonly rebootCommand?: readonly string[] | undefined;
  /** Where the kernel shows its parameters and its command line. */
  readonly proc?: string | undefined;
  /** What writes the boot loader's config from `/etc/default/grub.d`. */
  readonly updateGrub?: readonly string[] | undefined;
}

/** What this applier can do with its machine besides files. */
export interface Host extends Pick<HostSettings, 'systemdAnalyze' | 'updateGrub' | 'proc'> {
  readonly root: string;
  readonly ending: AbortSignal;
  /** `action:…` for what can be taken here. */
  readonly capabilities: readonly string[];
  readonly systemd: Systemd | undefined;
  /** Empty where nothing may restart the machine. */
  readonly rebootCommand: readonly string[];
}

const UPDATE_GRUB = '/usr/sbin/update-grub';

/**
 * Looks what there is; with a root that is not the machine's own only what the settings name, for the machine's units
 * are not those below it. Throws when systemd runs the machine and does not answer.
 */
export async function findHost(settings: HostSettings, root: string, ending: AbortSignal): Promise<Host> {
  const isOwn = root === '/';
  const systemctl = settings.systemctl ?? (isOwn && existsSync('/run/systemd/system') ? 'systemctl' : undefined);
  const found = systemctl === undefined ? undefined : new Systemd(systemctl, root, ending);
  const systemd = found !== undefined && (await found.isThere()) ? found : undefined;
  const rebootCommand =
    settings.rebootCommand ?? (systemd === undefined || systemctl === undefined ? [] : [systemctl, 'reboot']);
  return {
    root,
    ending,
    systemd,
    rebootCommand,
    updateGrub: settings.updateGrub ?? (isOwn && existsSync(UPDATE_GRUB) ? [UPDATE_GRUB] : undefined),
    proc: settings.proc ?? (isOwn ? '/proc' : undefined),
    systemdAnalyze: settings.systemdAnalyze ?? (isOwn ? 'systemd-analyze' : undefined),
    capabilities: [
      ...(systemd === undefined ? [] : ['action:daemon-reload', 'action:reload', 'action:restart']),
      ...(rebootCommand.length === 0 ? [] : ['action:reboot']),
    ],
  };
}

/** Whether this process may write there: a hardened unit has parts of the machine read-only, or hides them. */
export function mayWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
