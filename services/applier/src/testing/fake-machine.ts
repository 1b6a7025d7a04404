import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HostSettings } from '../shell/host/host.js';

/** Programs and folders of a machine, below a folder. They are real processes that a spec can inspect. */
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

  /** A program that runs this shell script. */
  program(name: string, script: string): string {
    const path = join(this.folder, name);
    writeFileSync(path, `#!/bin/sh\n${script}\n`);
    chmodSync(path, 0o755);
    return path;
  }

  /** A unit that existed before Sluice. */
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

  /** Puts a unit in this state, as systemd calls it. */
  is(name: string, active: string): void {
    writeFileSync(join(this.state, 'active', name), `${active}\n`);
  }

  /** The machine is starting, and this unit waits for others; or no longer. */
  queue(name: string, is: boolean): void {
    if (is) writeFileSync(join(this.state, 'queued', name), '');
    else rmSync(join(this.state, 'queued', name));
    rmSync(join(this.state, 'active', name), { force: true });
  }

  /** The calls of systemctl since the last check. */
  calls(): readonly string[] {
    const log = join(this.state, 'log');
    const lines = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n').filter(Boolean) : [];
    writeFileSync(log, '');
    return lines;
  }

  /** The content with which a unit was last started; undefined if it does not run. */
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
   * Simulates a reboot: the kernel runs with the boot loader's arguments, and all enabled units start with their
   * current content.
   */
  boot(cmdline?: string): void {
    if (cmdline !== undefined) this.runsWith(cmdline);
    rmSync(join(this.state, 'reboot'), { force: true });
    rmSync(join(this.state, 'active'), { recursive: true, force: true });
    rmSync(join(this.state, 'running'), { recursive: true, force: true });
    this.systemctl('daemon-reload');
    for (const unit of readdirSync(join(this.state, 'enabled'))) this.systemctl('start', unit);
    this.calls();
  }

  /** The kernel's command line. */
  runsWith(cmdline: string): void {
    mkdirSync(join(this.folder, 'proc'), { recursive: true });
    writeFileSync(join(this.folder, 'proc/cmdline'), `${cmdline}\n`);
  }

  /** Changes units like another program. */
  become(deeds: { readonly [verb in 'start' | 'stop' | 'enable' | 'disable']?: string }): void {
    for (const [verb, unit] of Object.entries(deeds)) this.systemctl(verb, unit);
    this.calls();
  }

  private systemctl(...args: readonly string[]): void {
    spawnSync(this.settings.systemctl as string, args);
  }

  /** Whether a reboot was requested. */
  get rebootAsked(): boolean {
    return existsSync(join(this.state, 'reboot'));
  }

  private read(folder: string, unit: string): string | undefined {
    const path = join(this.state, folder, unit);
    return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
  }
}
