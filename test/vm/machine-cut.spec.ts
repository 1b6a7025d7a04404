import { describeWith } from '../e2e/needs.js';
import { FORWARD, PowerCuts } from './power-cuts.js';

jest.setTimeout(1_800_000);

describeWith(['vm-long'], 'a machine whose power is cut during a change', () => {
  const cuts = new PowerCuts();
  const { pauses } = cuts.place;

  beforeAll(() => cuts.open());
  afterAll(() => cuts.place.close());

  test('performs exactly the steps that are cut below', async () => {
    pauses.clear();
    const id = await cuts.change();
    expect(await cuts.place.ended(id)).toMatchObject({ phase: 'committed' });
    const passed = pauses.passed.map((point) => cuts.general(point));
    expect([...new Set(passed)].toSorted()).toEqual(FORWARD.toSorted());
    await cuts.isWhole(id);
  });

  test.each(FORWARD)('%s', async (point) => {
    pauses.hold((passed) => cuts.general(passed) === point);
    await cuts.cutAt(await cuts.change(), point);
  });
});
