import type { Session } from '../connection/session.js';
import { waitForRemoval } from './wait-for-removal.js';

const view = (part: object) => ({
  fragment: { kind: 'File', name: 'a', labels: {}, spec: { nodeSelector: {}, deletion: 'everyNode' } },
  change: 'c7',
  gone: true,
  removing: false,
  stillOn: [],
  ...part,
});
const HELD = view({ removing: true, stillOn: ['n1', 'n2'] });

/** What it says about File/a, whose view has these values one after another, and how it ends. */
async function waited(timeoutMs: number, ...values: readonly object[]) {
  const lines: string[] = [];
  const fleet = {
    get: () => Promise.resolve(values[0]),
    async *watch(_bucket: string, key: string, ending: AbortSignal) {
      for (const value of values) yield { key, value };
      if (!ending.aborted) await new Promise((resolve) => ending.addEventListener('abort', resolve, { once: true }));
    },
  };
  const io = { say: (text: string) => void lines.push(text), interrupted: new AbortController().signal };
  const session = { io, fleet: () => Promise.resolve(fleet) } as unknown as Session;
  return { exit: await waitForRemoval(session, [{ kind: 'File', name: 'a' }], timeoutMs), lines };
}

it('waits until no node has the fragment, and names those that have', async () => {
  expect(await waited(600_000, view({ gone: false }), HELD, HELD, view({}))).toEqual({
    exit: 0,
    lines: ['File/a is being removed; still on n1, n2'],
  });
});

it('does not wait without deletion: everyNode, nor for what never existed', async () => {
  const fragment = { kind: 'File', name: 'a', labels: {}, spec: { nodeSelector: {} } };
  expect(await waited(600_000, view({ fragment, gone: false, stillOn: ['n1'] }))).toEqual({ exit: 0, lines: [] });
  expect(await waited(600_000)).toEqual({ exit: 0, lines: [] });
});

it('says when time is up what still has it, and what to do', async () => {
  expect(await waited(0.5, HELD)).toEqual({
    exit: 5,
    lines: [
      'File/a is being removed; still on n1, n2',
      'File/a is still being removed from n1, n2: see why with sluice why n1; if a node never returns, remove it with sluice remove NODE',
    ],
  });
});
