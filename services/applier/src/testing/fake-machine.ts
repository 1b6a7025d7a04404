import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HostSettings } from '../shell/host/host.js';

/** Programs and folders that a machine would have, below a folder: real processes that a spec can look into. */
export class FakeMachine {
  readonly settings: HostSettings;
  private readonly state: string;

  constructor(
    private readonly folder: string,
    private readonly root: string,
  ) {
    this.state = join(folder, 'systemd');
    for (const name of ['loaded', 'running', 'active', 'enabled', 'queued'])
      mkdirSync(join(this.state, name), { recursive: true });
    const systemctl = this.program(
      'systemctl',
      `FAKE_STATE='${this.state}' FAKE_ROOT='${root}' exec '${join(__dirname, 'fake-systemctl.sh')}' "$@"`,
    );
    const updateGrub = this.program(
      'update-grub',
      `mkdir -p '${root}/boot/grub'; GRUB_CMDLINE_LINUX=; . '${root}/etc/default/grub'; for f in '${root}'/etc/default/grub.d/*.cfg; do [ -e "$f" ] && . "$f"; done; echo "linux /vmlinuz root=/dev/sda1 $GRUB_CMDLINE_LINUX" > '${root}/boot/grub/grub.cfg'; echo update-grub >> '${this.state}/log'`,
    );
    this.settings = {
      systemctl,
      rebootCommand: [systemctl, 'reboot'],
      proc: join(folder, 'proc'),
      updateGrub: [updateGrub],
    };
  }

  /** A program that does this in a shell. */
  program(name: string, script: string): string {
    const path = join(this.folder, name);
    writeFileSync(path, `#!/bin/sh\n${script}\n`);
    chmodSync(path, 0o755);
    return path;
  }

  /** A unit as somebody else left it. */
  unit(name: string, content: string, is: { readonly active?: boolean; readonly enabled?: boolean } = {}): void {
    mkdirSync(join(this.root, 'etc/systemd/system'), { recursive: true });
    writeFileSync(join(this.root, 'etc/systemd/system', name), content, { mode: 0o644 });
    writeFileSync(join(this.state, 'loaded', name), content);
    if (is.active === true) {
      writeFileSync(join(this.state, 'active', name), 'active\n');
      writeFileSync(join(this.state, 'running', name), content);
    }
    if (is.enabled === true) writeFileSync(join(this.state, 'enabled', name), '');
  }

  /** The machine comes up, and what is before this unit is not done; or it is. */
  queue(name: string, is: boolean): void {
    if (is) writeFileSync(join(this.state, 'queued', name), '');
    else rmSync(join(this.state, 'queued', name));
    rmSync(join(this.state, 'active', name), { force: true });
  }

  /** What was asked of systemctl, since the last time. */
  asked(): readonly string[] {
    const log = join(this.state, 'log');
    const lines = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n').filter(Boolean) : [];
    writeFileSync(log, '');
    return lines;
  }

  /** What a unit was last started with; undefined when it does not run. */
  running(unit: string): string | undefined {
    return this.read('running', unit);
  }

  active(unit: string): string {
    return this.read('active', unit)?.trim() ?? 'inactive';
  }

  isEnabled(unit: string): boolean {
    return this.read('enabled', unit) !== undefined;
  }

  /**
   * What a restart does: the kernel runs with what the boot loader has, and all that is enabled is started with what
   * stands there.
   */
  boot(cmdline?: string): void {
    if (cmdline !== undefined) this.runsWith(cmdline);
    rmSync(join(this.state, 'reboot'), { force: true });
    rmSync(join(this.state, 'active'), { recursive: true, force: true });
    rmSync(join(this.state, 'running'), { recursive: true, force: true });
    this.systemctl('daemon-reload');
    for (const unit of readdirSync(join(this.state, 'enabled'))) this.systemctl('start', unit);
    this.asked();
  }

  /** What the kernel says that it was started with. */
  runsWith(cmdline: string): void {
    mkdirSync(join(this.folder, 'proc'), { recursive: true });
    writeFileSync(join(this.folder, 'proc/cmdline'), `${cmdline}\n`);
  }

  /** What somebody else does with units. */
  become(deeds: { readonly [verb in 'start' | 'stop' | 'enable' | 'disable']?: string }): void {
    for (const [verb, unit] of Object.entries(deeds)) this.systemctl(verb, unit);
    this.asked();
  }

  private systemctl(...args: readonly string[]): void {
    spawnSync(this.settings.systemctl as string, args);
  }

  /** Whether the machine was told to restart. */
  get rebootAsked(): boolean {
    return existsSync(join(this.state, 'reboot'));
  }

  private read(folder: string, unit: string): string | undefined {
    const path = join(this.state, folder, unit);
    return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
  }
}
