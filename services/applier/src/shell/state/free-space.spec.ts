import { tmpdir } from 'node:os';
import { freeBytesIn } from './free-space.js';

it('is unlimited where the file system does not say how large it is', async () => {
  expect(await freeBytesIn('/proc')).toBe(Infinity);
  expect(await freeBytesIn(tmpdir())).toBeLessThan(Infinity);
});
