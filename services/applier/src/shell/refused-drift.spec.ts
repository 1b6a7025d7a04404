import { chmodSync, linkSync, mkdirSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import type { ConfigEntry, PathAnswer } from '#libs/contracts';
import { config, directory, file, Host } from './applier-host.fixture.js';

let host: Host;
beforeEach(() => {
  host = new Host();
});
afterEach(() => host.end());

const OWN = file('/own', 'ours');
const FOLDER = directory('/folder');

/** What somebody put at a managed path, what the drift check says about it, and why the node refuses to correct it. */
const OBSTACLES: readonly (readonly [
  what: string,
  put: () => void,
  how: string,
  reason: string,
  entry: ConfigEntry,
])[] = [
  [
    'a directory with something in it',
    () => {
      unlinkSync(host.path('own'));
      mkdirSync(host.path('own'));
      writeFileSync(host.path('own/precious'), '');
    },
    'is a directory',
    'a directory that is not empty is in the way',
    OWN,
  ],
  [
    'a file with several hard links',
    () => {
      linkSync(host.path('own'), host.path('other'));
      writeFileSync(host.path('own'), 'edited');
    },
    'content differs',
    '/own has 2 hard links, and the others would keep the old content: if that is intended, set `hardLinks: break`',
    OWN,
  ],
  [
    'a link to a directory',
    () => {
      unlinkSync(host.path('own'));
      symlinkSync('folder', host.path('own'));
    },
    'is a symbolic link',
    '/own is a symbolic link to a directory',
    OWN,
  ],
  [
    'a setuid file',
    () => {
      writeFileSync(host.path('own'), 'edited');
      chmodSync(host.path('own'), 0o4755);
    },
    'content differs',
    '/own has mode 4755, and needs --allow-setuid on this node: setuid, setgid and file capabilities let others act as the owner',
    OWN,
  ],
];

describe('drift that the node refuses to correct', () => {
  const drifted = (difference: string) =>
    host.bus.reported(({ kind, differences }) => kind === 'drifted' && differences.includes(difference));
  const answerOf = ({ kind, name, spec: { content: _, ...spec } }: ConfigEntry): Promise<PathAnswer> =>
    new Promise((answer) => {
      const entries = [{ kind, name, labels: {}, spec: spec as Record<string, string> }];
      host.bus.push({ query: { request: { paths: [String(spec['path'])], entries }, answer } });
    });

  it.each(OBSTACLES)(
    'because of %s is refused for the same reason in a drift check, a plan and a lease',
    async (_what, put, how, reason, entry) => {
      await host.start({ driftCheckMs: 20 });
      const path = String(entry.spec['path']);
      expect(await host.bus.roll(config(OWN, FOLDER))).toMatchObject({ verdict: 'applied' });
      put();
      await drifted(`${path}: ${how}, and cannot be corrected: ${reason.replace(`${path} `, '')}`);
      expect((await answerOf(entry)).found).toMatchObject([{ path, refused: reason }]);
      const refused = { verdict: 'failed', restored: true, reason: expect.stringContaining(reason) as string };
      expect(await host.bus.roll(config(OWN, FOLDER), { kind: 'repair' })).toMatchObject(refused);
      expect(await host.bus.roll(config(file('/own', 'new'), FOLDER))).toMatchObject(refused);
      // A change that does not touch it leaves it alone, and says so.
      expect(await host.bus.roll(config(OWN, FOLDER, file('/side', 'x')))).toMatchObject({
        verdict: 'applied',
        changed: ['/side'],
        reason: expect.stringContaining(reason) as string,
      });
    },
  );

  it('can be corrected once the obstacle is gone', async () => {
    await host.start({ driftCheckMs: 20 });
    await host.bus.roll(config(OWN));
    unlinkSync(host.path('own'));
    mkdirSync(host.path('own'));
    writeFileSync(host.path('own/precious'), '');
    await drifted('/own: is a directory, and cannot be corrected: a directory that is not empty is in the way');
    rmSync(host.path('own/precious'));
    await drifted('/own: is a directory');
    expect((await answerOf(OWN)).found).toEqual([]);
    expect(await host.bus.roll(config(OWN), { kind: 'repair' })).toMatchObject({
      verdict: 'applied',
      changed: ['/own'],
    });
  });
});
