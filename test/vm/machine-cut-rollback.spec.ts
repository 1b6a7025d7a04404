import { describeWith } from '../e2e/needs.js';
import { BACK, PowerCuts, RESTART } from './power-cuts.js';
import { everywhere } from './vm-scene.js';

jest.setTimeout(1_800_000);

describeWith(['vm-long'], 'a machine whose power is cut', () => {
  const cuts = new PowerCuts();
  const { pauses } = cuts.place;

  beforeAll(() => cuts.open());
  afterAll(() => cuts.place.close());

  test.each(BACK)('during the rollback %s', async (point) => {
    pauses.hold(
      (passed) =>
        passed === point && (point.endsWith('rolling-back') || pauses.passed.includes('after journal rolling-back')),
    );
    await cuts.cutAt(await cuts.change(false), `${point} during the rollback`);
  });

  describe('around its own reboot,', () => {
    beforeAll(() =>
      cuts.place.commit(
        everywhere('DisruptionPolicy', 'boot', { files: [{ path: '/etc/two', actions: [{ kind: 'reboot' }] }] }),
      ),
    );

    test.each(RESTART)('%s', async (point) => {
      pauses.hold((passed) => passed === point);
      await cuts.cutAt(await cuts.change(), point);
    });
  });
});
