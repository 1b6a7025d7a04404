import { existsSync } from 'node:fs';
import type { HostSettings } from './host-settings.js';
import { Systemd } from './systemd.js';

/** What this applier can do with its machine beside files. */
export interface Host {
  readonly root: string;
  readonly ending: AbortSignal;
  /** `action:…` for what can be taken here. */
  readonly capabilities: readonly string[];
  readonly systemd: Systemd | undefined;
  readonly systemdAnalyze: string | undefined;
  /** Makes grub.cfg of /etc/default/grub.d; undefined where there is no such program. */
  readonly updateGrub: readonly string[] | undefined;
  /** Where the kernel shows its parameters and its command line. */
  readonly proc: string | undefined;
  /** Empty where nothing may restart the machine. */
  readonly rebootCommand: readonly string[];
}

const UPDATE_GRUB = '/usr/sbin/update-grub';

/** Looks what there is; with a root that is not the machine's own only what the settings name, for the machine's units are not those below it. */
export async function findHost(settings: HostSettings, root: string, ending: AbortSignal): Promise<Host> {
  const isOwn = root === '/';
  const systemctl = settings.systemctl ?? (isOwn && existsSync('/run/systemd/system') ? 'systemctl' : undefined);
  const found = systemctl === undefined ? undefined : new Systemd(systemctl, root, ending);
  const systemd = found !== undefined && (await found.answers()) ? found : undefined;
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
