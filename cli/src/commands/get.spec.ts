import type { ListedObject } from '#libs/client';
import { cli } from '../fakes.fixture.js';

const stored = { object: 'app.tar', sha256: 'a'.repeat(64), bytes: 7, storedMs: 0, isWhole: true };
const objects = [stored as unknown as ListedObject];

describe('get -o yaml', () => {
  it('prints objects as a list', async () => {
    expect(await cli(['get', 'objects', '-o', 'yaml'], { objects })).toMatchObject({
      exit: 0,
      out: `- object: app.tar\n  sha256: ${'a'.repeat(64)}\n  bytes: 7\n`,
    });
  });

  it.each(['known-bad', 'fragments', 'objects'])('prints an empty list if there are no %s', async (what) => {
    expect(await cli(['get', what, '-o', 'yaml'], {})).toMatchObject({ exit: 0, out: '[]\n' });
  });
});
