import fc from 'fast-check';
import { changeId, type ChangeView } from '#libs/contracts';
import { contentsOf } from './changes.js';
import { GatewayWorld, sha256 } from './gateway.fixture.js';
import { FINALIZER } from './resource.js';

const NAMES = ['a', 'b', 'c'] as const;
const LIVES = Number(process.env['LIVES'] ?? 200);

type Step =
  | { readonly do: 'apply'; readonly name: string; readonly content: string }
  | { readonly do: 'remove' | 'foreign-delete'; readonly name: string }
  | { readonly do: 'foreign'; readonly name: string; readonly content: string }
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'end'; readonly phase: 'committed' | 'rejected' | 'reverted'; readonly which: number }
  | { readonly do: 'restart' };

const name = fc.constantFrom(...NAMES);
const content = fc.constantFrom('1', '2', '3');
const STEPS: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant('apply' as const), name, content }),
    fc.record({ do: fc.constantFrom('remove' as const, 'foreign-delete' as const), name }),
    fc.record({ do: fc.constant('foreign' as const), name, content }),
    fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(1, 500, 2_000) }),
    fc.record({
      do: fc.constant('end' as const),
      phase: fc.constantFrom('committed' as const, 'rejected' as const, 'reverted' as const),
      which: fc.nat(5),
    }),
    fc.record({ do: fc.constant('restart' as const) }),
  ),
  { maxLength: 40 },
);

const fileOf = (fragment: string, text: string): object => ({
  kind: 'File',
  metadata: { name: fragment },
  spec: { nodeSelector: {}, path: `/etc/${fragment}`, content: text },
});

/**
 * The oldest changes that have not ended. The merger ends those that share a fragment in order, or supersedes the older
 * one.
 */
function end(world: GatewayWorld, phase: 'committed' | 'rejected' | 'reverted', which: number): void {
  const open = world.published
    .map((_, i) => changeId(i + 1))
    .filter((change) => !['committed', 'rejected', 'ended'].includes(world.views.get(change)?.phase ?? ''));
  const change = open[which % Math.max(1, open.length)];
  if (change === undefined) return;
  const touched = contentsOf(world.published[Number(change.slice(1)) - 1]?.text ?? '', sha256);
  for (const older of open) {
    if (Number(older.slice(1)) >= Number(change.slice(1))) break;
    const meets = [...contentsOf(world.published[Number(older.slice(1)) - 1]?.text ?? '', sha256).keys()].some((id) =>
      touched.has(id),
    );
    if (meets) world.show(older, 'ended', { outcome: 'superseded' } as Partial<ChangeView>);
  }
  if (phase === 'reverted') world.show(change, 'ended', { outcome: 'reverted' });
  else world.show(change, phase);
}

function take(world: GatewayWorld, step: Step): void {
  switch (step.do) {
    case 'apply':
      return void (world.objects.get(`File/${step.name}`)?.deleting === true || world.apply(step.name, step.content));
    case 'remove':
      return void world.remove(step.name);
    case 'foreign':
      return void world.publish({ apply: [fileOf(step.name, step.content)] });
    case 'foreign-delete':
      return void world.publish({ delete: [{ kind: 'File', name: step.name }] });
    case 'pass':
      world.nowMs += step.ms;
      return;
    case 'end':
      return end(world, step.phase, step.which);
    case 'restart':
      return void world.restart();
  }
}

/**
 * What the changes that count say about a fragment, computed in a simpler way than in the gateway: the newest that did
 * not fail.
 */
function publishedHash(world: GatewayWorld, id: string): string | undefined {
  for (let i = world.published.length; i > 0; i -= 1) {
    const view = world.views.get(changeId(i));
    if (view?.phase === 'rejected' || view?.phase === 'ended') continue;
    const hash = contentsOf(world.published[i - 1]?.text ?? '', sha256).get(id);
    if (hash !== undefined) return hash;
  }
  return undefined;
}

test('in the end, each object matches what was published last or its last try failed, and nothing is left to do or to read', () => {
  fc.assert(
    fc.property(STEPS, (steps) => {
      const world = new GatewayWorld().restart();
      for (const step of steps) {
        take(world, step);
        world.act();
      }
      // At last, the merger reads everything that was published.
      world.published.forEach((_, i) => world.views.has(changeId(i + 1)) || world.show(changeId(i + 1), 'accepted'));
      world.rest();
      for (const object of world.objects.values()) {
        const id = `File/${object.name}`;
        const wanted = object.deleting ? 'absent' : (world.state.resources.get(id)?.hash ?? '');
        const phase = String(object.status?.['phase']);
        const failed = ['Rejected', 'Reverted', 'DeletionFailed'].includes(phase);
        expect({ id, phase, failed, says: failed ? wanted : publishedHash(world, id) }).toEqual({
          id,
          phase,
          failed,
          says: wanted,
        });
        expect(object.finalizers).toEqual([FINALIZER]);
      }
      world.published.forEach((_, i) => world.views.has(changeId(i + 1)) || world.show(changeId(i + 1), 'accepted'));
      world.rest();
      const [published, actions] = [world.published.length, world.actions.length];
      world.nowMs += 3_600_000;
      world.restart().rest();
      expect([world.published.length, world.actions.length]).toEqual([published, actions]);
    }),
    { numRuns: LIVES, seed: 7 },
  );
});

test('an object disappears only if no change that counts puts it on a node', () => {
  fc.assert(
    fc.property(STEPS, (steps) => {
      const world = new GatewayWorld().restart();
      for (const step of steps) {
        const before = new Set(world.objects.keys());
        const held = new Set(
          [...before].filter((id) => world.objects.get(id)?.finalizers.includes(FINALIZER) === true),
        );
        take(world, step);
        world.act();
        for (const id of before)
          if (!world.objects.has(id) && held.has(id)) expect([undefined, 'absent']).toContain(publishedHash(world, id));
      }
    }),
    { numRuns: LIVES, seed: 11 },
  );
});

test('what is published differs from the newest change that counts, or was refused', () => {
  fc.assert(
    fc.property(STEPS, (steps) => {
      const world = new GatewayWorld().restart();
      for (const step of steps) {
        take(world, step);
        const before = world.published.length;
        const hashes = new Map(NAMES.map((fragment) => [`File/${fragment}`, publishedHash(world, `File/${fragment}`)]));
        world.act();
        const fresh = world.published.slice(before).filter(({ source }) => source === 'kubernetes');
        expect(fresh.length).toBeLessThanOrEqual(1);
        for (const { text } of fresh)
          for (const [id, hash] of contentsOf(text, sha256))
            expect({ id, differs: hashes.get(id) !== hash }).toEqual({ id, differs: true });
      }
    }),
    { numRuns: LIVES, seed: 13 },
  );
});
