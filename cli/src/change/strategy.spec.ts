import { cli } from '../fakes.fixture.js';

const MOTD = JSON.stringify({
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'File',
  metadata: { name: 'motd' },
  spec: { nodeSelector: {}, path: '/etc/motd', content: 'hi' },
});

describe.each(['plan', 'apply'])('the strategy of %s', (command) => {
  const strategyOf = async (...flags: string[]): Promise<unknown> => {
    const plans: Record<string, unknown>[] = [];
    const published: { source: string; body: Record<string, unknown>; id: string | undefined }[] = [];
    const answers = {
      'ops.config.plan': (body: Record<string, unknown>) => (plans.push(body), { rejected: [], nodes: [] }),
    };
    const { exit, err } = await cli([command, '-f', '-', ...flags], { answers, published }, {}, MOTD);
    return exit === 0 ? (published[0]?.body ?? plans[0])?.['strategy'] : err;
  };

  it('comes from the flags', async () => {
    expect(await strategyOf('--max-failures', '2', '--max-unavailable', '10%', '--needs-timeout', '90m')).toEqual({
      maxFailures: 2,
      maxUnavailable: '10%',
      needsTimeout: '1h30m',
    });
    expect(await strategyOf()).toBeUndefined();
  });

  it.each([
    ['--max-unavailable', '0', 'is not a number of nodes, such as 2, or a percentage from 1% to 100%'],
    ['--max-failures', '-1', 'is not a number of nodes'],
    ['--needs-timeout', 'soon', 'is not a duration'],
    ['--needs-timeout', '0s', '--needs-timeout: 0s is too short: use 1ms to 168h'],
  ])('%s %s is refused', async (flag, value, message) => {
    expect(await strategyOf(`${flag}=${value}`)).toContain(message);
  });
});
