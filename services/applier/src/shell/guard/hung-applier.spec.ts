import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '#libs/testing';
import { MemoryNodeBus } from '../../testing/memory-node-bus.js';
import { SmallDisk, whyNoDeadMount, whyNoSmallDisk } from '../../testing/small-disk.js';
import type { HungPlan } from '../../testing/hung-applier.js';
import { config, file, Host, probe } from '../applier-host.fixture.js';
import { hashOf, runApplier } from '../index.js';
import { parentOf } from '../process-table.js';
import { decodeJournal } from '../state/journal-text.js';

const TESTING = join(__dirname, '../../testing');
const APPLY_MS = 30_000;
const FIRST = config(file('/b', 'old', '0640'), file('/etc/a', 'old'));
const SECOND = config(
  file('/b', 'new', '0600'),
  file('/new/c', 'new'),
  probe('p', { file: { path: '/b', matches: '^(old|new)' } }),
);

const hosts: { readonly host: Host; readonly children: ChildProcess[] }[] = [];
afterAll(async () => {
  for (const { host, children } of hosts) {
    for (const child of children) child.kill('SIGKILL');
    await host.end();
  }
});

/** A node with an applier in a separate process. */
class Scene {
  readonly host: Host;
  readonly children: ChildProcess[] = [];
  output = '';

  constructor(folder?: string) {
    this.host = new Host(folder);
    hosts.push(this);
    spawnSync('mkfifo', [this.host.path('fifo')]);
  }

  /** `ready`: when the second lease may begin. */
  start(plan: Partial<HungPlan>, ready: Promise<unknown> = Promise.resolve()): ChildProcess {
    const whole: HungPlan = {
      root: this.host.root,
      state: this.host.state,
      first: FIRST,
      second: SECOND,
      step: 'apply',
      ...plan,
      lease: { applyMs: APPLY_MS, ...plan.lease },
    };
    const child = spawn(
      process.execPath,
      [join(TESTING, 'run-ts.cjs'), join(TESTING, 'hung-applier.ts'), JSON.stringify(whole)],
      { stdio: 'pipe' },
    );
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (this.output += chunk.toString()));
    ready.then(
      () => child.stdin.end(),
      () => child.kill('SIGKILL'),
    );
    this.children.push(child);
    return child;
  }

  content(path: string): string {
    const file = this.host.path(path);
    return existsSync(file) ? readFileSync(file, 'utf8') : '';
  }

  get journal() {
    const path = join(this.host.state, 'journal.json');
    const found = decodeJournal(existsSync(path) ? readFileSync(path, 'utf8') : '');
    return typeof found === 'string' ? undefined : found;
  }

  /** Everything below the root as `stat` shows it, except times and numbers. */
  get picture(): Readonly<Record<string, string>> {
    const found: Record<string, string> = {};
    const walk = (folder: string): void => {
      for (const name of readdirSync(folder).sort()) {
        const path = join(folder, name);
        const { mode, uid, gid, nlink, size } = lstatSync(path);
        const isFile = lstatSync(path).isFile();
        const isFolder = lstatSync(path).isDirectory();
        found[path.slice(this.host.root.length)] = [
          mode.toString(8),
          uid,
          gid,
          ...(isFolder ? [] : [nlink, size]),
          isFile ? readFileSync(path, 'utf8') : '',
        ].join(' ');
        if (isFolder) walk(path);
      }
    };
    walk(this.host.root);
    return found;
  }

  /** Processes that work in the state folder or below the root, by their command lines and folders. */
  get processes(): readonly string[] {
    return readdirSync('/proc')
      .filter((pid) => /^\d+$/.test(pid) && pid !== String(process.pid))
      .flatMap((pid) => {
        try {
          const commandLine = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
          const place = readlinkSync(`/proc/${pid}/cwd`);
          return commandLine.includes(this.host.folder) || place.startsWith(this.host.folder)
            ? [`${pid} ${commandLine}`]
            : [];
        } catch {
          return [];
        }
      });
  }

  /** The pids of the sentinel, without the processes that it starts: until they run a program, they look like it. */
  get sentinels(): readonly number[] {
    const pids = this.processes
      .filter((commandLine) => commandLine.includes('sluice-guard'))
      .map((commandLine) => Number(commandLine.split(' ')[0]));
    return pids.filter((pid) => this.children.some((child) => child.pid === parentOf(pid)));
  }

  /** Waits until the lease is over. The applier itself must not have ended it. */
  async over(): Promise<void> {
    await until(
      () => this.journal?.lastDealt?.lease === 'l2' && this.journal.work === undefined,
      'the change is over',
    ).catch((error: Error) => {
      throw new Error(`${error.message}: ${this.output} ${this.processes.join('; ')}`);
    });
  }

  /** The first report on the lease that the next applier sends. */
  async reported(second = SECOND, first = FIRST) {
    const bus = new MemoryNodeBus('n');
    const applier = await runApplier({
      node: 'n',
      labels: {},
      root: this.host.root,
      stateDir: this.host.state,
      bus,
      network: false,
    });
    try {
      await bus.reported(({ kind }) => kind === 'announced' || kind === 'failed' || kind === 'invalid');
      if (this.journal?.lastDealt?.lease !== 'l2')
        bus.grant(second, { lease: 'l2', from: hashOf(first), applyMs: APPLY_MS });
      return await bus.reported(({ lease }) => lease === 'l2');
    } finally {
      await applier.stop();
    }
  }
}

/** In a change that waits in one step, without an error. */
async function underWay(scene: Scene, plan: Partial<HungPlan> = {}): Promise<ChildProcess> {
  const child = scene.start({ step: 'compare', phase: 'forward', how: 'waits', ...plan });
  await until(() => scene.journal?.work?.phase === 'forward' && scene.content('b') === 'new', 'it has applied');
  return child;
}

async function noneLeft(scene: Scene): Promise<void> {
  await until(() => scene.processes.length === 0, 'no process is left').catch(() => undefined);
  expect(scene.processes).toEqual([]);
}

const isGone = (child: ChildProcess): boolean => child.signalCode !== null || child.exitCode !== null;

describe('an applier that hangs during a change is killed, and its guard rolls back', () => {
  const CASES = [
    [
      'in a probe, in an endless loop',
      'run-probes',
      'forward',
      'spins',
      'invalid',
      /did not respond for \d+ s in the step run-probes/,
    ],
    [
      'in a call to a file system that does not answer',
      'apply',
      'forward',
      'opens',
      'failed',
      /did not respond for \d+ s in the step apply/,
    ],
    ['because of SIGSTOP', 'compare', 'forward', 'stops', 'failed', /did not respond for \d+ s in the step compare/],
    ['in a step that never ends', 'compare', 'forward', 'waits', 'failed', /made no progress in the step compare/],
    [
      'in its own rollback',
      'apply',
      'rolling-back',
      'spins',
      'invalid',
      /^the probe absent passed before and fails now/,
    ],
  ] as const;
  const scenes = new Map<
    string,
    { readonly scene: Scene; readonly child: ChildProcess; readonly before: Promise<object> }
  >();

  beforeAll(() => {
    for (const [name, step, phase, how] of CASES) {
      const scene = new Scene();
      const second =
        phase === 'forward'
          ? SECOND
          : config(...SECOND.fragments, probe('absent', { file: { path: '/new/c', absent: true } }));
      const before = until(
        () => (scene.journal?.inForce === hashOf(FIRST) ? scene.picture : undefined),
        'the first config is in force',
      );
      const child = scene.start({ step, phase, how, second }, before);
      scenes.set(name, { scene, child, before });
    }
  });

  it.each(CASES)('%s', async (name, _step, _phase, _how, verdict, reason) => {
    const { scene, child, before } = scenes.get(name) as NonNullable<ReturnType<typeof scenes.get>>;
    const old = await before;
    await scene.over();
    await until(() => isGone(child), 'the applier has ended');
    expect([child.signalCode, scene.output]).toEqual(['SIGKILL', '']);
    expect(scene.picture).toEqual(old);
    expect(scene.journal).toMatchObject({ sound: true, inForce: hashOf(FIRST), lastDealt: { lease: 'l2', verdict } });
    await noneLeft(scene);
    expect(await scene.reported()).toMatchObject({
      lease: 'l2',
      verdict,
      restored: true,
      reason: expect.stringMatching(reason) as string,
    });
  });
});

test.concurrent('an applier that hangs before a change is killed, and the next one reports it and does not start the change', async () => {
  const scene = new Scene();
  const child = scene.start({ step: 'run-probes', phase: undefined, how: 'spins' });
  await until(() => isGone(child), 'the guard kills it');
  expect(child.signalCode).toBe('SIGKILL');
  const old = scene.picture;
  expect(scene.journal).toMatchObject({ inForce: hashOf(FIRST), lastDealt: { lease: 'l1', verdict: 'applied' } });
  expect(await scene.reported()).toMatchObject({
    lease: 'l2',
    verdict: 'invalid',
    reason: expect.stringMatching(/did not respond for \d+ s in the step run-probes/) as string,
  });
  expect(scene.picture).toEqual(old);
  await noneLeft(scene);
});

test.concurrent('an applier that hangs in a probe that the change leaves as it was does not make the config known-bad', async () => {
  const scene = new Scene();
  const [same] = SECOND.fragments.filter(({ kind }) => kind === 'Probe');
  const first = config(...FIRST.fragments, ...(same === undefined ? [] : [same]));
  const child = scene.start({ first, step: 'run-probes', phase: undefined, how: 'spins' });
  await until(() => isGone(child), 'the guard kills it');
  expect(scene.journal).toMatchObject({ inForce: hashOf(first), lastDealt: { lease: 'l1', verdict: 'applied' } });
  expect(await scene.reported(SECOND, first)).toMatchObject({
    lease: 'l2',
    verdict: 'failed',
    reason: expect.stringMatching(/did not respond for \d+ s in the step run-probes/) as string,
  });
  await noneLeft(scene);
});

test.concurrent('a command that ignores SIGTERM ends with the hung applier that runs it', async () => {
  const scene = new Scene();
  const stubborn = `trap '' TERM; echo >${scene.host.path('begun')}; (trap '' TERM; setsid sleep 1000) & while :; do sleep 1; done`;
  const exec = {
    kind: 'Exec',
    name: 'stubborn',
    spec: { check: { argv: ['false'] }, apply: { argv: ['/bin/sh', '-c', stubborn] } },
  };
  const child = scene.start({ second: config(file('/b', 'new'), exec), lease: { applyMs: 60_000 } });
  await until(() => existsSync(scene.host.path('begun')), 'the command runs');
  expect(scene.content('b')).toBe('new');
  child.kill('SIGSTOP');
  await scene.over();
  expect(scene.content('b')).toBe('old');
  await noneLeft(scene);
});

const whyNoDisk = whyNoSmallDisk('tmpfs') ?? whyNoDeadMount();
(whyNoDisk === undefined ? test.concurrent : test.skip)(
  'a file system that does not answer keeps no other path from being rolled back, and is rolled back once it answers',
  async () => {
    const disk = await SmallDisk.mount('tmpfs', 8_192);
    try {
      const scene = new Scene(disk.path);
      const files = (content: string) =>
        config(...['/b', '/mnt/remote/a', '/mnt/remote/b', '/zzz/c'].map((path) => file(path, content)));
      await underWay(scene, { first: files('old'), second: files('new') });
      const answerAgain = disk.stopAnswering('root/mnt/remote');
      const contents = () => ['/b', '/zzz/c'].map((path) => scene.content(path));
      await until(() => scene.journal?.work === undefined, 'the guard has rolled back what it could');
      expect(contents()).toEqual(['old', 'old']);
      expect(scene.journal).toMatchObject({ sound: false, lastDealt: { lease: 'l2', verdict: 'failed' } });
      expect(scene.journal?.lastDealt?.reason).toContain('the file system at /mnt/remote does not answer');
      answerAgain();
      await until(() => scene.journal?.sound === true, 'the rest is rolled back');
      expect(['/mnt/remote/a', '/mnt/remote/b'].map((path) => scene.content(path))).toEqual(['old', 'old']);
    } finally {
      await disk.end();
    }
  },
);

test.concurrent('a guard that is killed is started again while the applier works', async () => {
  const scene = new Scene();
  const child = await underWay(scene, { lease: { applyMs: 120_000 } });
  const [sentinel = 0] = await until(() => (scene.sentinels.length > 0 ? scene.sentinels : undefined), 'it is guarded');
  process.kill(sentinel, 'SIGKILL');
  await until(() => scene.sentinels.some((pid) => pid !== sentinel), 'another one guards it');
  expect(isGone(child)).toBe(false);
  child.kill('SIGSTOP');
  await scene.over();
  expect(scene.content('b')).toBe('old');
});

test.concurrent('a guard that is killed during a rollback is started again', async () => {
  const scene = new Scene();
  const child = await underWay(scene, { lease: { applyMs: 60_000 } });
  child.kill('SIGSTOP');
  const rollingBack = await until(
    () =>
      isGone(child)
        ? scene.processes.find((commandLine) => commandLine.includes(' sluice-guard ') === false)
        : undefined,
    'the guard has killed the applier',
  );
  process.kill(Number(rollingBack.split(' ')[0]), 'SIGKILL');
  await scene.over();
  expect(scene.content('b')).toBe('old');
  expect(scene.journal).toMatchObject({ sound: true, lastDealt: { lease: 'l2', verdict: 'failed' } });
});

test.concurrent('an applier and its guard that are killed together leave a change that the next applier finishes', async () => {
  const scene = new Scene();
  const child = await underWay(scene);
  const [sentinel = 0] = await until(() => (scene.sentinels.length > 0 ? scene.sentinels : undefined), 'it is guarded');
  process.kill(-sentinel, 'SIGKILL');
  child.kill('SIGKILL');
  await until(() => scene.processes.length === 0, 'both are gone');
  expect(scene.journal?.work?.phase).toBe('forward');
  const report = await scene.reported();
  expect(['applied', 'failed']).toContain(report.verdict);
  expect(scene.content('b')).toBe(report.verdict === 'applied' ? 'new' : 'old');
});

test.concurrent('a guard in another container rolls back when everything in the container of an applier is killed', async () => {
  const scene = new Scene();
  const root = join(__dirname, '../../../../..');
  const main = join(root, 'dist/services/applier/src/main.js');
  if (!existsSync(main)) throw new Error(`${main} is not there: npm run build`);
  const script = join(root, 'deploy/applier/stand-guard');
  const env = { ...process.env, SLUICE_STATE: scene.host.state, SLUICE_APPLIER: `${process.execPath} ${main}` };
  const other = spawn('/bin/sh', [script], { env, stdio: 'ignore', detached: true });
  const isOther = (pid: number): boolean => pid === other.pid || (pid > 1 && isOther(parentOf(pid) ?? 0));
  try {
    const child = await underWay(scene);
    await until(() => scene.processes.some((line) => isOther(Number(line.split(' ')[0]))), 'the other one guards, too');
    child.kill('SIGKILL');
    // A container ends with its first process, and all others are killed with it.
    for (const pid of scene.processes.map((line) => Number(line.split(' ')[0])))
      if (!isOther(pid)) process.kill(pid, 'SIGKILL');
    await scene.over();
    expect(['b', 'new/c'].map((path) => scene.content(path))).toEqual(['old', '']);
    expect(scene.journal).toMatchObject({ sound: true, lastDealt: { lease: 'l2', verdict: 'failed' } });
    await noneLeft(scene);
  } finally {
    other.kill('SIGTERM');
    await until(() => isGone(other), 'the other one ends');
  }
});

test.concurrent('an applier that is stopped leaves no guard behind', async () => {
  const scene = new Scene();
  const child = scene.start({});
  await until(() => isGone(child), 'it has ended');
  expect(scene.output).toBe('ended\n');
  expect(scene.journal).toMatchObject({ inForce: hashOf(SECOND), lastDealt: { lease: 'l2', verdict: 'applied' } });
  await noneLeft(scene);
});
