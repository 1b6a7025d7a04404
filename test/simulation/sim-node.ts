import {
  EMPTY_CONFIG,
  nodeToken,
  type Config,
  type ConfigEntry,
  type LeaseView,
  type NodeReport,
  type StatusView,
} from '#libs/contracts';
import {
  advance,
  hear,
  nextStep,
  start,
  UNREACHABLE,
  type Item,
  type Journal,
  type Kinds,
  type Original,
  type Originals,
  type Outcome,
  type Refusal,
  type Self,
  type State,
  type Step,
} from '../../services/applier/src/core/index.js';
import { Machine } from './machine.js';
import { Disk } from './disk.js';
import { EMPTY_HASH } from './gathering.js';
import type { World } from './world.js';

export const SIM_KINDS: Kinds = {
  order: ['File'],
  entries: (config) => config.fragments,
  forgotten: [],
  mayCutOff: () => false,
  controlPlane: [],
  controlPlaneBefore: [],
  resources: (entry) => (entry.kind === 'File' ? [`path:${String(entry.spec['path'])}`] : []),
};
const CAPABILITIES = ['action:reboot', 'action:restart', 'kind:File', 'kind:Probe'];
const HEARTBEAT_MS = 30_000;

/** What is wrong with the machine for a time. */
export interface Trouble {
  /** Nothing can be written: neither state folder nor files. */
  readonly full: boolean;
  /** Files that nobody can write. */
  readonly readOnly: readonly string[];
  /** How often a probe says the opposite. */
  readonly flapping: number;
}
export const NO_TROUBLE: Trouble = { full: false, readOnly: [], flapping: 0 };
const NO_SPACE: Refusal = { fault: 'node', reason: 'no space left on device' };
const READ_ONLY: Refusal = { fault: 'node', reason: 'read-only file' };

/** A machine with an applier: the machine lasts, the applier can be killed between any two steps. */
export class SimNode {
  disk: Disk;
  readonly machine: Machine;
  alive = false;
  connected = true;
  /** Switched off for good. */
  scrapped = false;
  bootId = 'boot-1';
  /** By how much its wall clock is wrong. */
  wallSkewMs = 0;
  trouble: Trouble = NO_TROUBLE;
  /** The lease that an old copy of its disk was in the middle of: it is gone back from, whoever has drained since. */
  revived: string | undefined;
  /** What was there before Sluice. */
  readonly originals = new Map([['/etc/app', 'ok original']]);
  state: State | undefined;
  private run = 0;
  private diskFailures = 0;
  private fated: { steps: number; readonly how: 'killed' | 'torn'; readonly onDeath: () => void } | undefined;

  constructor(
    readonly world: World,
    readonly name: string,
    public labels: Readonly<Record<string, string>>,
    readonly fresh: boolean,
    private readonly skewMs: number,
  ) {
    this.disk = new Disk(name, this.originals);
    this.machine = new Machine(this);
  }

  /** Milliseconds since boot, by the machine's own clock. */
  get bootMs(): number {
    return this.world.clock.nowMs + this.skewMs;
  }

  get journal(): Journal {
    return this.disk.readJournal();
  }

  start(): void {
    if (this.alive || this.scrapped) return;
    this.run += 1;
    this.alive = true;
    const self: Self = { labels: this.labels, capabilities: CAPABILITIES, version: '1', fresh: this.fresh };
    const settings = { kinds: SIM_KINDS, emptyHash: EMPTY_HASH, readEveryMs: 60_000, driftCheckMs: 120_000 };
    this.state = start(settings, self, this.journal, {
      bootId: this.bootId,
      nowMs: this.bootMs,
      random: this.world.chance.whole(1, 4_000_000_000),
    });
    this.world.trace(() => `${this.name} starts`);
    this.step();
    this.beat(this.run);
  }

  kill(): void {
    this.fated = undefined;
    this.run += 1;
    this.alive = false;
    this.state = undefined;
    this.world.trace(() => `${this.name} killed`);
  }

  reboot(): void {
    this.kill();
    this.bootId = `boot-${Number(this.bootId.slice(5)) + 1}`;
    this.machine.booted();
  }

  /** Switched off for good; nobody says so. */
  scrap(): void {
    this.kill();
    this.scrapped = true;
  }

  /** A new disk: neither journal nor files of before. */
  lose(): void {
    this.restore(new Disk(this.name, this.originals));
  }

  /** Another disk takes the place of this one: an empty one, or an old copy. */
  restore(disk: Disk): void {
    if (this.alive) this.kill();
    this.disk = disk;
    this.revived = this.journal.work?.lease;
    this.machine.booted();
    this.world.trace(() => `${this.name} has another disk`);
  }

  /** Dies in the middle of what it does: after so many steps more, perhaps in the middle of writing its journal. */
  dieAfter(steps: number, how: 'killed' | 'torn', onDeath: () => void): void {
    this.fated = { steps, how, onDeath };
  }

  private dies(step: Step): boolean {
    const { fated } = this;
    if (fated === undefined || fated.steps-- > 0 || (fated.how === 'torn' && step.do !== 'write-journal')) return false;
    if (fated.how === 'torn' && step.do === 'write-journal') {
      this.disk.tearJournal(step.journal);
      this.world.fire('torn-journals');
    }
    this.kill();
    fated.onDeath();
    return true;
  }

  relabel(labels: Readonly<Record<string, string>>): void {
    this.labels = labels;
    if (this.state === undefined) return;
    this.state = hear(this.state, { heard: 'self', labels, capabilities: CAPABILITIES }, this.bootMs);
    this.nudge();
  }

  pushed(lease: LeaseView | undefined, status: StatusView | undefined): void {
    if (this.state === undefined || !this.connected) return;
    if (lease !== undefined) this.state = hear(this.state, { heard: 'lease', lease }, this.bootMs);
    if (status !== undefined) this.state = hear(this.state, { heard: 'status', status }, this.bootMs);
    this.nudge();
  }

  disconnect(): void {
    this.connected = false;
  }

  reconnect(): void {
    this.connected = true;
    if (this.state === undefined) return;
    this.state = hear(this.state, { heard: 'connected' }, this.bootMs);
    this.nudge();
  }

  private waiting = false;
  private nudge(): void {
    if (!this.waiting) return;
    this.run += 1;
    this.waiting = false;
    this.beat(this.run);
    this.step();
  }

  private beat(run: number): void {
    if (run !== this.run || !this.alive) return;
    if (this.connected) this.world.alive(this.name);
    this.world.clock.after(HEARTBEAT_MS, () => this.beat(run));
  }

  private step(): void {
    const { run, state } = this;
    if (state === undefined) return;
    const step = nextStep(state, this.bootMs);
    this.waiting = step.do === 'wait';
    const delayMs =
      step.do === 'wait' ? Math.max(1, Math.min(step.untilMs - this.bootMs, 600_000)) : this.world.delayMs();
    this.world.clock.after(delayMs, () => {
      if (run !== this.run || this.state === undefined) return;
      this.waiting = false;
      if (step.do !== 'wait' && this.dies(step)) return;
      if (this.trouble.full && WRITES_STATE.includes(step.do)) return this.waitForDisk(run);
      this.diskFailures = 0;
      const outcome = this.perform(step);
      this.state = advance(this.state, step, outcome, this.bootMs);
      this.step();
    });
  }

  /** The state folder fails: the same is tried again, as the runner does. */
  private waitForDisk(run: number): void {
    this.world.fire('full-disks');
    this.world.clock.after(Math.min(60_000, 1_000 * 2 ** this.diskFailures++), () => {
      if (run === this.run) this.step();
    });
  }

  private perform(step: Step): Outcome | typeof UNREACHABLE {
    switch (step.do) {
      case 'write-journal':
        this.disk.writeJournal(step.journal);
        this.world.onJournal(this, step.journal);
        return undefined;
      case 'load-config':
        return this.load(step.hash);
      case 'tidy':
        for (const hash of this.disk.configs.keys()) if (!step.configs.includes(hash)) this.disk.configs.delete(hash);
        return undefined;
      case 'check':
        return step.config.fragments.flatMap((entry) => refusesContent(entry) ?? []);
      case 'read-before':
        return this.readBefore(step.entries, step.known);
      case 'run-probes':
        return step.probes.map((probe) => this.probe(probe));
      case 'apply':
        return this.refuses(String(step.entry.spec['path'])) ?? this.apply(step.entry);
      case 'put-back':
        return this.refuses(step.key.slice(5)) ?? this.putBack(step.key, step.original);
      case 'act':
        return this.machine.act(step.action);
      case 'read-unit':
        return this.machine.readUnit();
      case 'guard':
      case 'settle':
      case 'wait':
        return undefined;
      case 'compare':
        return step.items.flatMap((item) => (this.isSo(item) ? [] : [{ what: pathOf(item), how: 'differs' }]));
      case 'read-status':
      case 'read-lease':
      case 'fetch-config':
      case 'report':
        return this.connected ? this.ask(step) : UNREACHABLE;
    }
  }

  private refuses(path: string): Refusal | undefined {
    if (this.trouble.full) return NO_SPACE;
    if (!this.trouble.readOnly.includes(path)) return undefined;
    this.world.fire('read-only-files');
    return READ_ONLY;
  }

  private load(hash: string): Config | undefined {
    if (hash === EMPTY_HASH) return EMPTY_CONFIG;
    const text = this.disk.configs.get(hash);
    return text === undefined ? undefined : (JSON.parse(text) as Config);
  }

  private ask(
    step: Extract<Step, { do: 'read-status' | 'read-lease' | 'fetch-config' | 'report' }>,
  ): Outcome | typeof UNREACHABLE {
    const { bus } = this.world;
    const token = nodeToken(this.name);
    if (step.do === 'read-status') return bus.view('status', token);
    if (step.do === 'read-lease') return bus.view('leases', token);
    if (step.do === 'report')
      return this.world.deliverReport({
        ...step.report,
        at: new Date(this.world.clock.nowMs + this.wallSkewMs).toISOString(),
      } as NodeReport)
        ? undefined
        : UNREACHABLE;
    const text = bus.config(this.name, step.hash);
    if (text === undefined) return { fault: 'node', reason: 'no such config' };
    this.disk.configs.set(step.hash, text);
    return JSON.parse(text) as Config;
  }

  private readBefore(entries: readonly ConfigEntry[], known: Originals): Originals {
    const keys = entries.flatMap((entry) => SIM_KINDS.resources(entry)).filter((key) => known[key] === undefined);
    return Object.fromEntries(
      keys.map((key) => [key, { kind: 'File', was: this.disk.files.get(key.slice(5)) ?? null, made: [] }]),
    );
  }

  private probe(probe: ConfigEntry): { readonly name: string; readonly passed: boolean; readonly reason: string } {
    const { path, matches } = probe.spec['file'] as { path: string; matches: string };
    const flaps = this.trouble.flapping > 0 && this.world.chance.happens(this.trouble.flapping);
    if (flaps) this.world.fire('flapping-probes');
    const passed = new RegExp(matches).test(this.disk.files.get(path) ?? '') !== flaps;
    return { name: probe.name, passed, reason: passed ? '' : `${path} does not match` };
  }

  private apply(entry: ConfigEntry): Refusal | undefined {
    const content = String(entry.spec['content']);
    if (content.includes(`unlucky:${this.name};`)) return { fault: 'node', reason: 'this disk does not take it' };
    this.disk.files.set(String(entry.spec['path']), content);
    this.world.onWrite(this);
    return undefined;
  }

  private putBack(key: string, original: Original): undefined {
    if (this.world.mutant?.keepsReplaced === true) return;
    if (original.was === null) this.disk.files.delete(key.slice(5));
    else this.disk.files.set(key.slice(5), String(original.was));
  }

  private isSo(item: Item): boolean {
    if (item.do === 'apply') return this.disk.files.get(String(item.entry.spec['path'])) === item.entry.spec['content'];
    if (this.world.mutant?.keepsReplaced === true) return true;
    return (this.disk.files.get(item.key.slice(5)) ?? null) === item.original.was;
  }
}

const WRITES_STATE: readonly Step['do'][] = ['write-journal', 'fetch-config', 'tidy', 'read-before'];
/** Some contents no node takes, some no node of one role. */
const refusesContent = (entry: ConfigEntry): Refusal | undefined =>
  entry.kind === 'File' && /garbage|no-(\w+)-but-no-\1/.test(String(entry.spec['content']))
    ? { fault: 'content', reason: 'it does not parse' }
    : undefined;

const pathOf = (item: Item): string =>
  item.do === 'put-back' ? item.key.slice(5) : String(item.entry.spec['path'] ?? item.entry.name);
