import { existsSync, accessSync, constants } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { Systemd } from './systemd.js';

/**
 * The programs and folders of the machine that an applier works with. If the root is the machine's own, those that are
 * not set are searched.
 */
export interface HostSettings {
  /** The program `systemctl`. If it answers, units can be reloaded and restarted. */
  readonly systemctl?: string | undefined;
  /** The program `systemd-analyze`, which checks whether a unit parses. */
  readonly systemdAnalyze?: string | undefined;
  /** The command that reboots the machine, instead of `systemctl reboot`; an empty list: rebooting is not allowed. */
  readonly rebootCommand?: readonly string[] | undefined;
  /** The folder in which the kernel shows its parameters and its command line. */
  readonly proc?: string | undefined;
  /** The program that generates the boot loader's config from `/etc/default/grub.d`. */
  readonly updateGrub?: readonly string[] | undefined;
}

/** What this applier can do with its machine besides files. */
export interface Host extends Pick<HostSettings, 'systemdAnalyze' | 'updateGrub' | 'proc'> {
  readonly root: string;
  readonly ending: AbortSignal;
  /** `action:…` for each action that can be taken here. */
  readonly capabilities: readonly string[];
  readonly systemd: Systemd | undefined;
  /** The unit of systemd that this process runs in. */
  readonly ownUnit: string | undefined;
  /** Empty if rebooting is not allowed. */
  readonly rebootCommand: readonly string[];
}

const UPDATE_GRUB = '/usr/sbin/update-grub';

/**
 * Finds out what the machine has. With a root that is not the machine's own, uses only the settings, because the
 * machine's units are not below that root. Throws if systemd runs the machine and does not answer.
 */
export async function findHost(settings: HostSettings, root: string, ending: AbortSignal): Promise<Host> {
  const isOwn = root === '/';
  const systemctl = settings.systemctl ?? (isOwn && existsSync('/run/systemd/system') ? 'systemctl' : undefined);
  const candidate = systemctl === undefined ? undefined : new Systemd(systemctl, root, ending);
  const systemd = candidate !== undefined && (await candidate.isThere()) ? candidate : undefined;
  const rebootCommand =
    settings.rebootCommand ?? (systemd === undefined || systemctl === undefined ? [] : [systemctl, 'reboot']);
  const proc = settings.proc ?? (isOwn ? '/proc' : undefined);
  return {
    root,
    ending,
    systemd,
    ownUnit: systemd === undefined || proc === undefined ? undefined : await ownUnit(proc),
    rebootCommand,
    updateGrub: settings.updateGrub ?? (isOwn && existsSync(UPDATE_GRUB) ? [UPDATE_GRUB] : undefined),
    proc,
    systemdAnalyze: settings.systemdAnalyze ?? (isOwn ? 'systemd-analyze' : undefined),
    capabilities: [
      ...(systemd === undefined ? [] : ['action:daemon-reload', 'action:reload', 'action:restart']),
      ...(rebootCommand.length === 0 ? [] : ['action:reboot']),
    ],
  };
}

/** systemd runs each service in a cgroup that ends with the name of its unit. */
async function ownUnit(proc: string): Promise<string | undefined> {
  const text = await readFile(`${proc}/self/cgroup`, 'utf8').catch(() => '');
  return /^(?:0:|\d+:name=systemd):.*\/([^/]+\.service)$/m.exec(text)?.[1];
}

/** Whether this process may write there. A hardened unit sees parts of the machine as read-only, or not at all. */
export function mayWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
