import type { FleetClient } from '#libs/client';
import { PLAIN } from '../fakes.fixture.js';
import { warningOfMissing } from './missing-services.js';
import type { Session } from './session.js';

/** A connection. Services that have not answered when it is closed look as if they were missing. */
function connection(missing: readonly string[]) {
  const lines: string[] = [];
  const closing = new AbortController();
  const missingServices = async (): Promise<readonly string[]> => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    return closing.signal.aborted ? ['scheduler'] : missing;
  };
  const fleet = { missingServices, unreadChanges: () => Promise.resolve([]) } as unknown as FleetClient;
  const session = {
    io: { say: (text: string) => void lines.push(text), colours: PLAIN },
    fleet: () => Promise.resolve(fleet),
  } as unknown as Session;
  const run = async (command: () => Promise<number>): Promise<unknown> => {
    const end = await warningOfMissing(session, command).catch((error: unknown) => error);
    closing.abort();
    await new Promise((resolve) => setTimeout(resolve, 40));
    return end;
  };
  return { lines, run };
}

describe('a command that fails before the services have answered', () => {
  const fails = (): Promise<number> => Promise.reject(new Error('n9 not found'));

  test('names no service that only had no time to answer', async () => {
    const { lines, run } = connection([]);
    expect(await run(fails)).toMatchObject({ message: 'n9 not found' });
    expect(lines).toEqual([]);
  });

  test('names a service that does not run, because that may be the cause', async () => {
    const { lines, run } = connection(['inventory']);
    expect(await run(fails)).toMatchObject({ message: 'n9 not found' });
    expect(lines).toEqual([expect.stringContaining('the service inventory does not answer')]);
  });
});
