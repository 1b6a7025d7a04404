import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Config } from '#libs/contracts';
import { runApplier } from '../../services/applier/src/shell/index.js';
import { MemoryNodeBus } from '../../services/applier/src/testing/memory-node-bus.js';
import { Chance } from '../simulation/world/chance.js';
import { editFolder, type Folder } from './doors/state-folders.js';

const NODE = 'w-1.dc1';
const SEEDS = Array.from({ length: 60 }, (_, i) => i + 1);
const file = (content: string): Config => ({
  fragments: [{ kind: 'File', name: 'motd', spec: { path: '/etc/motd', content } }],
});

describe('an applier with a state folder that was truncated or edited', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-fuzz-state-'));
  const start = (state: string, bus: MemoryNodeBus) =>
    runApplier({
      node: NODE,
      labels: {},
      root: join(folder, 'root'),
      stateDir: state,
      bus,
      heartbeatMs: 60_000,
      driftCheckMs: 60_000,
      readEveryMs: 60_000,
    });
  let good: Folder = {};

  beforeAll(async () => {
    const bus = new MemoryNodeBus(NODE);
    mkdirSync(join(folder, 'root'), { recursive: true });
    const applier = await start(join(folder, 'good'), bus);
    await bus.reported((report) => report.kind === 'announced');
    expect(await bus.roll(file('one'))).toMatchObject({ kind: 'applied' });
    expect(await bus.roll(file('two'))).toMatchObject({ kind: 'applied' });
    await applier.stop();
    good = read(join(folder, 'good'));
    expect(Object.keys(good).filter((name) => name.startsWith('journal'))).toHaveLength(2);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test.each(SEEDS)('either says which file cannot be used, or works (seed %s)', async (seed) => {
    const { what, files } = editFolder(new Chance(seed, 'fuzz'), good);
    const state = join(folder, String(seed));
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(dirname(join(state, name)), { recursive: true });
      writeFileSync(join(state, name), content);
    }
    const bus = new MemoryNodeBus(NODE);
    // It can request lost configs again.
    for (const content of ['one', 'two']) bus.store(file(content));
    const applier = await start(state, bus).catch((error: unknown) => error as Error);
    if (applier instanceof Error) {
      expect({ what, name: applier.name, message: applier.message }).toEqual({
        what,
        name: 'StateError',
        message: expect.stringContaining(state) as string,
      });
      return;
    }
    try {
      await bus.reported((report) => report.kind === 'announced');
      expect(await bus.roll(file(`seed ${seed}`))).toMatchObject({ kind: 'applied' });
      expect(readFileSync(join(folder, 'root', 'etc', 'motd'), 'utf8')).toBe(`seed ${seed}`);
    } finally {
      await applier.stop();
    }
  });
});

function read(folder: string, below = ''): Folder {
  return Object.fromEntries(
    readdirSync(join(folder, below)).flatMap((name) => {
      const path = join(below, name);
      return statSync(join(folder, path)).isDirectory()
        ? Object.entries(read(folder, path))
        : [[path, readFileSync(join(folder, path))]];
    }),
  );
}
