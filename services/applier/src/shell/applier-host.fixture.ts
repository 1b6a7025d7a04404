import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ConfigEntry } from '#libs/contracts';
import { MemoryNodeBus } from '../testing/memory-node-bus.js';
import { runApplier, type ApplierOptions, type RunningApplier } from './index.js';

export const file = (path: string, content: string, mode?: string): ConfigEntry => ({
  kind: 'File',
  name: path.replaceAll('/', '-').slice(1),
  spec: { path, content, ...(mode === undefined ? {} : { mode }) },
});
export const directory = (path: string, mode?: string): ConfigEntry => ({
  kind: 'Directory',
  name: `d${path.replaceAll('/', '-')}`,
  spec: { path, ...(mode === undefined ? {} : { mode }) },
});
export const probe = (name: string, spec: object): ConfigEntry => ({
  kind: 'Probe',
  name,
  spec: { timeout: '300ms', retries: 1, ...spec },
});

/** A node in a temporary folder, and its applier on a bus in memory. */
export class Host {
  readonly folder: string;
  readonly root: string;
  readonly state: string;
  readonly bus = new MemoryNodeBus('w-1.dc1');
  private applier: RunningApplier | undefined;

  constructor(folder = mkdtempSync(join(tmpdir(), 'sluice-applier-'))) {
    this.folder = folder;
    this.root = join(folder, 'root');
    this.state = join(folder, 'state');
    mkdirSync(this.root);
  }

  /** Waits for a report. Does not wait if the applier has to end work before it can send one. */
  async start({
    awaitReport = true,
    ...options
  }: Partial<ApplierOptions> & { readonly awaitReport?: boolean } = {}): Promise<RunningApplier> {
    const before = this.bus.reports.length;
    this.applier = await runApplier({
      node: 'w-1.dc1',
      labels: { role: 'edge' },
      root: this.root,
      stateDir: this.state,
      bus: this.bus,
      heartbeatMs: 50,
      ...options,
    });
    if (!this.bus.down && awaitReport) await this.bus.reported((report) => this.bus.reports.indexOf(report) >= before);
    return this.applier;
  }

  async stop(): Promise<void> {
    await this.applier?.stop();
  }

  async end(): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  path(path: string): string {
    return join(this.root, path);
  }

  /** Everything below the root: path → description. */
  tree(): Record<string, string> {
    const found: Record<string, string> = {};
    const walk = (folder: string): void => {
      for (const name of readdirSync(this.path(folder)).sort()) {
        const below = join(folder, name);
        const stat = lstatSync(this.path(below));
        const mode = (stat.mode & 0o7777).toString(8);
        if (stat.isSymbolicLink()) found[below] = `-> ${readlinkSync(this.path(below))}`;
        else found[below] = stat.isDirectory() ? `dir ${mode}` : `${mode} ${readFileSync(this.path(below), 'utf8')}`;
        if (stat.isDirectory()) walk(below);
      }
    };
    walk('');
    return found;
  }
}

export const config = (...fragments: ConfigEntry[]) => ({ fragments });
