import { Reach } from './reach.js';

it('says once why the target does not answer, and once that it does again', async () => {
  const changes: unknown[] = [];
  let error: Error | undefined = new Error('it does not let root in');
  const reach = new Reach({
    ask: () => (error === undefined ? Promise.resolve() : Promise.reject(error)),
    onChange: (...change) => void changes.push(change),
    everyMs: 60_000,
  });
  for (let i = 0; i < 2; i++) expect(await reach.look()).toBe(false);
  error = undefined;
  for (let i = 0; i < 2; i++) expect(await reach.look()).toBe(true);
  reach.stop();
  expect(changes).toEqual([[false, 'it does not let root in'], [true]]);
});
