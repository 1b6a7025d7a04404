/** Which programs and folders of its machine an applier works with. What is left out is looked for where the root is the machine's own. */
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

/** The words of a command as a flag has it; undefined where there is no flag. */
export const commandWords = (text: string | undefined): readonly string[] | undefined =>
  text?.split(/\s+/).filter((word) => word !== '');
