import { cli } from '../fakes.fixture.js';

test('delete of KIND/NAME says how to write it', async () => {
  expect((await cli(['delete', 'file/motd'], {})).err).toBe(
    'error: give the kind and the name separately: sluice delete File motd\n',
  );
  expect((await cli(['delete', 'car/motd'], {})).err).toContain('error: unknown kind "car/motd"');
});
