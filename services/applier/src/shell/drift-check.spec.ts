import { SILENT, type StepOf } from '../core/index.js';
import { DriftCheck } from './drift-check.js';
import { ResourceSteps } from './resource-steps.js';

const STEP: StepOf<'start-drift-check'> = {
  do: 'start-drift-check',
  items: [],
  checks: { config: { fragments: [] }, from: { fragments: [] }, originals: {} },
  leaving: [],
  round: 3,
};
const steps = (): ResourceSteps =>
  new ResourceSteps({ rollBackWith: (work) => work() }, new Map(), { checkProbe: () => undefined }, () => 0);

afterEach(() => {
  jest.useRealTimers();
  jest.restoreAllMocks();
});

it('a call that never ends keeps a lease waiting only for a while', async () => {
  jest.useFakeTimers();
  const resources = steps();
  jest.spyOn(resources, 'checkDrift').mockReturnValue(new Promise(() => undefined));
  const check = new DriftCheck(STEP, resources, () => undefined, SILENT);
  const ended = check.end().then(() => 'ended');
  await jest.advanceTimersByTimeAsync(20_000);
  expect(await ended).toBe('ended');
});

it('a check that fails ends without a result, and is logged', async () => {
  const resources = steps();
  jest.spyOn(resources, 'checkDrift').mockRejectedValue(new Error('no'));
  const notices: object[] = [];
  const logged: object[] = [];
  const log = { ...SILENT, error: (fields: object) => void logged.push(fields) };
  await new DriftCheck(STEP, resources, (notice) => void notices.push(notice), log).end();
  expect([notices, logged]).toEqual([[{ kind: 'compared', round: 3 }], [{ error: 'no' }]]);
});
