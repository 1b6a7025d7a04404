import type { FleetClient } from '#libs/client';
import { changeView, rolloutView } from '../fakes.fixture.js';
import { followChange } from './follow-change.js';

test('a committed change waits for the view of its rollout, which may be written later', async () => {
  const fleet = {
    get: () => Promise.resolve(undefined),
    async *watch(bucket: string) {
      if (bucket === 'changes') yield { value: changeView({ phase: 'committed' }) };
      // As if the server had sent it after everything else that can be read now.
      await new Promise((resolve) => setTimeout(resolve, 20));
      if (bucket === 'rollouts') yield { value: rolloutView({ phase: 'succeeded', nodes: 0 }) };
    },
  } as unknown as FleetClient;
  const seen: unknown[] = [];
  const end = await followChange(fleet, 'c7', {
    signal: new AbortController().signal,
    onUpdate: ({ rollout }) => seen.push(rollout?.phase),
    endsWhenPaused: false,
  });
  expect([end.exit, end.because, end.rollout?.phase, seen]).toEqual([0, 'ended', 'succeeded', ['succeeded']]);
});
