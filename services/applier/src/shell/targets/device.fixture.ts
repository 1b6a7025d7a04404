import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ConfigEntry } from '#libs/contracts';
import { MemoryNodeBus } from '../../testing/memory-node-bus.js';
import { MEMORY_KINDS } from '../../testing/memory-node.js';
import { SILENT } from '../../core/index.js';
import { NO_GUARD } from '../guard/guard.js';
import type { Backend } from '../ports.js';
import { ResourceSteps } from '../resource-steps.js';
import { NO_CONTENTS } from './no-contents.js';
import { UnreachableError } from '../ports.js';
import { Reach } from './reach.js';
import { runTarget, type OpenTarget, type RunningTarget, type Target } from './run-target.js';
import { CALL_TIMEOUT_MS, type JournalBucket, type TargetStorage } from './target-storage.js';

/** Something elsewhere that has values by name, and may not answer. */
export class Device {
  readonly values = new Map<string, string>();
  isGone = false;
  /** The copy that it does not answer, although it answers others. */
  goneFor: string | undefined;
  /** How many calls were made. */
  asked = 0;
  /** Called before each call. A promise that never resolves is a copy that was killed or paused there. */
  gate: (copy: string) => Promise<void> = () => Promise.resolve();

  constructor(private readonly clock: () => number) {}

  /** A call that was made too long ago never arrives. */
  async call<T>(copy: string, work: () => T, timeoutMs = CALL_TIMEOUT_MS): Promise<T> {
    const lastMs = this.clock() + timeoutMs;
    this.asked += 1;
    await this.gate(copy);
    if (this.isGone || this.goneFor === copy || this.clock() > lastMs) throw new UnreachableError('no answer in 10 s');
    return work();
  }
}

/** The bucket of journals in memory. It may be away, or lose answers. */
export class MemoryJournals implements JournalBucket {
  readonly stored = new Map<string, { text: string; revision: number }>();
  readonly configs = new Map<string, string>();
  isDown = false;
  /** How many of the next answers to writes are lost. */
  losesAnswers = 0;
  gate: (copy: string) => Promise<void> = () => Promise.resolve();
  private revision = 0;

  constructor(
    private readonly copy = '',
    private readonly shared?: MemoryJournals,
  ) {}

  /** The same bucket, as one copy sees it. */
  of(copy: string): MemoryJournals {
    return new MemoryJournals(copy, this);
  }

  async read(node: string) {
    const bucket = await this.reached();
    return bucket.stored.get(node);
  }

  async write(node: string, text: string, revision: number): Promise<number> {
    const bucket = await this.reached();
    if ((bucket.stored.get(node)?.revision ?? 0) !== revision)
      throw Object.assign(new Error('wrong last sequence'), { name: 'OvertakenError' });
    bucket.revision += 1;
    bucket.stored.set(node, { text, revision: bucket.revision });
    if (bucket.losesAnswers > 0) {
      bucket.losesAnswers -= 1;
      throw new Error('timeout');
    }
    return bucket.revision;
  }

  readConfig(_node: string, hash: string): Promise<string | undefined> {
    return Promise.resolve((this.shared ?? this).configs.get(hash));
  }

  writeConfig(_node: string, hash: string, text: string): Promise<void> {
    return Promise.resolve(void (this.shared ?? this).configs.set(hash, text));
  }

  tidyConfigs(_node: string, kept: readonly string[]): Promise<void> {
    const { configs } = this.shared ?? this;
    for (const hash of configs.keys()) if (!kept.includes(hash)) configs.delete(hash);
    return Promise.resolve();
  }

  private async reached(): Promise<MemoryJournals> {
    const bucket = this.shared ?? this;
    await bucket.gate(this.copy);
    if (bucket.isDown) throw new Error('no connection');
    return bucket;
  }
}

const keyOf = ({ spec }: ConfigEntry): string => `path:${String(spec['path'])}`;

function backendOf(device: Device, reach: Reach, copy: string, storage: TargetStorage): Backend {
  const call = <T>(work: () => T): Promise<T> => reach.call(() => device.call(copy, work));
  const write = async (work: () => unknown): Promise<void> => {
    const leftMs = await storage.fence();
    await reach.call(() => device.call(copy, work, leftMs));
  };
  const name = (key: string): string => key.slice('path:'.length);
  return {
    kind: 'File',
    isIndependent: true,
    resources: (entry) => [keyOf(entry)],
    check: (entry) => call(() => void device.values.has(name(keyOf(entry)))),
    original: async (key) => ({
      kind: 'File',
      was: (await call(() => device.values.get(name(key)))) ?? null,
      made: [],
    }),
    restore: (key, { was }) =>
      write(() => void (was === null ? device.values.delete(name(key)) : device.values.set(name(key), String(was)))),
    differsFromOriginal: (key, was) =>
      call(() => ((device.values.get(name(key)) ?? null) === was ? undefined : 'differs from its original')),
    apply: async (entry, leftMs) => {
      const now = await call(() => device.values.get(name(keyOf(entry))));
      if (now === entry.spec['content']) return;
      if (leftMs() <= 0) throw new UnreachableError('the time is over');
      await write(() => void device.values.set(name(keyOf(entry)), String(entry.spec['content'])));
    },
    differs: (entry) =>
      call(() => (device.values.get(name(keyOf(entry))) === entry.spec['content'] ? undefined : 'differs')),
    title: (entry) => String(entry.spec['path']),
  };
}

/** A target that one copy sees. */
export function deviceTarget(
  device: Device,
  node: string,
  copy: string,
  clock: () => number,
  isRepeatable = false,
): Target {
  return {
    node,
    labels: { role: 'edge' },
    settings: '{}',
    capabilities: ['kind:File'],
    kinds: MEMORY_KINDS,
    isRepeatable,
    open: (storage, onChange): Promise<OpenTarget> => {
      const reach = new Reach({ ask: () => device.call(copy, () => undefined), onChange, everyMs: 50 });
      const backends = new Map([['File', backendOf(device, reach, copy, storage)]]);
      const resources = new ResourceSteps(storage, backends, { checkProbe: () => undefined }, clock);
      return Promise.resolve({
        reach,
        close: () => Promise.resolve(),
        site: {
          resources,
          contents: NO_CONTENTS,
          guard: NO_GUARD,
          idleUnits: () => Promise.resolve([]),
          resetFailed: () => Promise.resolve(),
          refusals: () => Promise.resolve([]),
          act: () => Promise.resolve(),
          readUnit: () => Promise.resolve(),
          runProbes: (probes) => Promise.resolve(probes.map(({ name }) => ({ name, passed: true, reason: '' }))),
          settled: () => Promise.resolve(),
        },
      });
    },
  };
}

export const AT_ONCE = AbortSignal.abort();

/** One device with its journal, its bus and a clock, and copies of the applier that serve it. */
export class Scene {
  readonly device = new Device(() => this.clock());
  readonly journals = new MemoryJournals();
  readonly bus = new MemoryNodeBus('f-1');
  readonly lost: string[] = [];
  /** Another copy need not wait for the end of a lease. */
  isRepeatable = false;
  /** Added to the real time. */
  aheadMs = 0;
  private readonly folder = mkdtempSync(join(tmpdir(), 'sluice-target-'));
  private readonly running: RunningTarget[] = [];
  private readonly ending = new AbortController();

  readonly clock = (): number => performance.now() + this.aheadMs;

  async copy(name: string): Promise<RunningTarget> {
    const running = await runTarget({
      target: deviceTarget(this.device, 'f-1', name, this.clock, this.isRepeatable),
      bus: this.bus,
      journals: this.journals.of(name),
      owner: name,
      folder: join(this.folder, name),
      clock: this.clock,
      random: () => 0.5,
      log: SILENT,
      version: '1',
      heartbeatMs: 20,
      driftCheckMs: 60_000,
      readEveryMs: 200,
      ending: this.ending.signal,
      // The time of calls that were made before is over then.
      sleep: async (ms) => {
        await new Promise((resolve) => setTimeout(resolve, 20));
        if (this.isRepeatable) this.aheadMs += ms;
      },
      onLost: () => this.lost.push(name),
    });
    this.running.push(running);
    return running;
  }

  /** A copy that has announced the target. */
  async first(name: string): Promise<RunningTarget> {
    const running = await this.copy(name);
    await this.bus.reported(({ kind }) => kind === 'announced');
    return running;
  }

  get values(): object {
    return Object.fromEntries([...this.device.values].sort());
  }

  /** Does not wait for copies that a gate holds. */
  async end(): Promise<void> {
    this.ending.abort();
    await Promise.race([
      Promise.allSettled(this.running.map((one) => one.stop(AT_ONCE))),
      new Promise((resolve) => setTimeout(resolve, 300)),
    ]);
    rmSync(this.folder, { recursive: true, force: true });
  }
}
