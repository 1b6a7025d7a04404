import type { Action } from '#libs/contracts';
import { until } from '#libs/testing';
import { fleetFixture } from './fleet.js';
import { file, health } from './manifests.js';
import type { Files } from './node-folders.js';

interface RolloutAnswer {
  readonly phase: string;
  readonly applied: number;
}
interface WhyAnswer {
  readonly because: string;
  readonly text: string;
}

const ORIGINALS = { '/etc/banner.conf': 'as the machine came\n' };
const app = (version: string): string => `app ${version} on {{ node.name }}\n`;
const appOn = (node: string, version: string): Files => ({ '/etc/app.conf': `app ${version} on ${node}\n` });

describe('a fleet of 40 nodes in three pools', () => {
  const stage = fleetFixture({ originals: ORIGINALS });
  const hasVersion =
    (version: string) =>
    (_node: string, files: Files): boolean =>
      files['/etc/app.conf']?.startsWith(`app ${version} `) === true;

  afterEach(() => {
    const { gate, witness } = stage.fleet;
    gate.release();
    gate.isUnhealthy = () => false;
    expect(witness.exceeded).toEqual([]);
  });

  test('a good change reaches every node, as many at once as the budgets allow', async () => {
    const { fleet } = stage;
    fleet.gate.hold(hasVersion('v1'));
    const change = await fleet.apply(health(fleet.gate.url), file('app', app('v1')));
    // The witness sees each of them twice before it gets its answer.
    await until(() => fleet.gate.held.size === 5, 'every unit is in use');
    fleet.gate.release();
    expect(await fleet.ended(change)).toMatchObject({
      phase: 'committed',
      nodes: 40,
      pools: { edge: 10, core: 6, rest: 24 },
    });
    expect(fleet.files()).toEqual(fleet.filesWith((node) => appOn(node, 'v1')));
    expect(Object.fromEntries(fleet.witness.most)).toEqual({ edge: 2, core: 1, rest: 2 });
    await fleet.when('rollouts', change, ({ phase }) => phase === 'succeeded');
    const subjects = (await fleet.events(`*.*.${change}`)).map(({ subject }) => subject);
    expect(subjects).toEqual(
      [
        'config.accepted',
        'config.rendered',
        'config.validated',
        'rollout.started',
        'rollout.complete',
        'config.committed',
        'rollout.succeeded',
      ].map((type) => `${type}.${change}`),
    );
  });

  test('a change that fails on its third node is rolled back everywhere, and refused when it is published again, until it is cleared', async () => {
    const { fleet } = stage;
    const changed = new Set<string>();
    fleet.gate.isUnhealthy = (node, files) =>
      hasVersion('v2')(node, files) && [...changed.add(node)].indexOf(node) === 2;
    const bad = await fleet.apply(file('app', app('v2')));
    expect(await fleet.ended(bad)).toMatchObject({ phase: 'ended', outcome: 'reverted' });
    expect(fleet.files()).toEqual(fleet.filesWith((node) => appOn(node, 'v1')));
    const third = [...changed][2] as string;
    // The validator judges it, and the merger shows how the change ended.
    const { hash } = await until(
      async () =>
        (await fleet.events('config.judged.*'))
          .map(({ body }) => body as { readonly node: string; readonly hash: string; readonly knownBad: boolean })
          .find(({ node, knownBad }) => node === third && knownBad),
      'the config of the third node is known-bad',
    );
    expect(hash).toMatch(/^[0-9a-f]{64}$/);
    const facts = (await fleet.events(`rollout.*.${bad}`)).map(({ subject }) => subject.split('.')[1]);
    expect(facts).toEqual(['started', 'failed', 'reverting', 'reverted']);

    const again = await fleet.apply(file('app', app('v2')));
    const refused = await fleet.ended(again);
    expect(refused).toMatchObject({ phase: 'rejected' });
    expect(refused.reasons.map(({ code }) => code)).toEqual(expect.arrayContaining(['known-bad']));
    expect(refused.reasons.map(({ message }) => message).join('\n')).toMatch(
      new RegExp(`known-bad: ${third} reported it as invalid in ${bad} `),
    );
    expect(fleet.files()).toEqual(fleet.filesWith((node) => appOn(node, 'v1')));
    const granted = (await fleet.events('node.lease.granted.>')).filter(
      ({ body }) => (body as { readonly change: string }).change === again,
    );
    expect(granted).toEqual([]);

    fleet.gate.isUnhealthy = () => false;
    expect(await fleet.cli('clear', hash, '--reason', 'the disk was full')).toMatchObject({ code: 0 });
    const cleared = await fleet.cli('retry', again, '--wait');
    expect(cleared).toMatchObject({ code: 0 });
    expect(fleet.files()).toEqual(fleet.filesWith((node) => appOn(node, 'v2')));
  });

  test('a correction replaces a running rollout, and nodes that have not started go straight to it', async () => {
    const { fleet } = stage;
    fleet.gate.hold(hasVersion('v3'));
    const older = await fleet.apply(file('app', app('v3')));
    await until(() => fleet.gate.held.size === 5, 'every unit is in use');
    const started = [...fleet.gate.held];
    const newer = await fleet.apply(file('app', app('v4')));
    await fleet.when('rollouts', older, ({ phase }) => phase === 'superseded');
    fleet.gate.release();
    expect(await fleet.ended(newer)).toMatchObject({ phase: 'committed' });
    expect(await fleet.ended(older)).toMatchObject({ phase: 'ended', outcome: 'superseded' });
    expect(fleet.files()).toEqual(fleet.filesWith((node) => appOn(node, 'v4')));
    const hadOlder = new Set(
      fleet.gate.requests.filter(({ node, files }) => hasVersion('v3')(node, files)).map(({ node }) => node),
    );
    expect([...hadOlder].sort()).toEqual(started.sort());
  });

  test('changes without a common node run in parallel, and one with a common node waits', async () => {
    const { fleet } = stage;
    fleet.gate.hold((_node, files) => files['/etc/edge.conf'] === 'one' || files['/etc/core.conf'] === 'one');
    const edge = await fleet.apply(file('edge', 'one', 'edge'));
    const core = await fleet.apply(file('core', 'one', 'core'));
    const later = await fleet.apply(file('later', 'two', 'edge'));
    await until(() => fleet.gate.held.size === 3, 'three nodes are applying');
    await fleet.shows('changes', later, { phase: 'waiting', waitsFor: [edge] });
    expect(
      (await fleet.events(`config.waiting.${later}`)).map(
        ({ body }) => (body as { readonly waitsFor: readonly string[] }).waitsFor,
      ),
    ).toEqual([[edge]]);
    fleet.gate.release();
    for (const change of [edge, core, later]) expect(await fleet.ended(change)).toMatchObject({ phase: 'committed' });
    const own = (node: string): Files =>
      node.startsWith('edge')
        ? { '/etc/edge.conf': 'one', '/etc/later.conf': 'two' }
        : node.startsWith('core')
          ? { '/etc/core.conf': 'one' }
          : {};
    expect(fleet.files()).toEqual(fleet.filesWith((node) => ({ ...appOn(node, 'v4'), ...own(node) })));
    expect(
      await fleet.ended(
        await fleet.publish({ delete: ['edge', 'core', 'later'].map((name) => ({ kind: 'File', name })) }),
      ),
    ).toMatchObject({ phase: 'committed', nodes: 16 });
    expect(fleet.files()).toEqual(fleet.filesWith((node) => appOn(node, 'v4')));
  });

  test('a paused rollout finishes its leases and grants none, and continues when it is resumed', async () => {
    const { fleet } = stage;
    fleet.gate.hold(hasVersion('v5'));
    const change = await fleet.apply(file('app', app('v5')));
    await until(() => fleet.gate.held.size === 5, 'every unit is in use');
    const started = [...fleet.gate.held].sort();
    expect(await fleet.client.request('ops.rollout.pause', { change, by: 'e2e', reason: 'lunch' })).toMatchObject({
      change,
      paused: true,
    });
    fleet.gate.release();
    await until(
      async () => (await fleet.client.request<RolloutAnswer>('ops.rollout.get', { change })).applied === 5,
      'what had begun is finished',
    );
    const waiting = fleet.nodes.filter((node) => !started.includes(node));
    expect(await fleet.client.request<WhyAnswer>('ops.node.why', { node: waiting[0] as string })).toMatchObject({
      because: 'paused',
      text: `${change} is paused by e2e: lunch`,
    });
    expect(fleet.files()).toEqual(fleet.filesWith((node) => appOn(node, started.includes(node) ? 'v5' : 'v4')));
    expect(await fleet.client.request('ops.rollout.resume', { change, by: 'e2e' })).toMatchObject({
      change,
      paused: false,
    });
    expect(await fleet.ended(change)).toMatchObject({ phase: 'committed' });
    expect(fleet.files()).toEqual(fleet.filesWith((node) => appOn(node, 'v5')));
  });

  test('a change with a pace of its own has no more nodes in the middle of it, over all pools', async () => {
    const { fleet } = stage;
    const { length } = fleet.witness.works;
    fleet.gate.hold((_node, files) => files['/etc/paced.conf'] === 'one');
    const change = await fleet.publish({ apply: [file('paced', 'one')], strategy: { maxUnavailable: '5%' } });
    await until(() => fleet.gate.held.size === 2, 'two of 40 nodes are applying');
    const [waiting = ''] = fleet.nodes.filter((node) => !fleet.gate.held.has(node));
    expect(await fleet.client.request<WhyAnswer>('ops.node.why', { node: waiting })).toMatchObject({
      because: 'budget',
      text: expect.stringMatching(/ changes at most 2 nodes at once [(]its maxUnavailable[)]: /) as string,
    });
    const most = (): number => {
      const works = fleet.witness.works.slice(length);
      return Math.max(
        ...works.map(({ fromMs }) => works.filter((one) => one.fromMs <= fromMs && fromMs < one.toMs).length),
      );
    };
    await until(() => most() === 2, 'both were seen at work at one moment');
    fleet.gate.release();
    expect(await fleet.ended(change)).toMatchObject({ phase: 'committed', nodes: 40 });
    expect(most()).toBe(2);
    expect(await fleet.ended(await fleet.publish({ delete: [{ kind: 'File', name: 'paced' }] }))).toMatchObject({
      phase: 'committed',
    });
  });

  test('an aborted rollout rolls back, and makes nothing known-bad', async () => {
    const { fleet } = stage;
    const judged = (await fleet.events('config.judged.*')).length;
    fleet.gate.hold(hasVersion('v6'));
    const change = await fleet.apply(file('app', app('v6')));
    await until(() => fleet.gate.held.size === 5, 'every unit is in use');
    expect(await fleet.client.request('ops.rollout.abort', { change, by: 'e2e', reason: 'wrong file' })).toMatchObject({
      change,
      aborted: true,
    });
    fleet.gate.release();
    expect(await fleet.ended(change)).toMatchObject({ phase: 'ended', outcome: 'aborted' });
    expect(fleet.files()).toEqual(fleet.filesWith((node) => appOn(node, 'v5')));
    expect(await fleet.events('config.judged.*')).toHaveLength(judged);
  });

  test('a file that existed before is restored when its fragment is deleted', async () => {
    const { fleet } = stage;
    expect(await fleet.ended(await fleet.apply(file('banner', 'managed\n')))).toMatchObject({
      phase: 'committed',
      nodes: 40,
    });
    expect(fleet.files()).toEqual(
      fleet.filesWith((node) => ({ ...appOn(node, 'v5'), '/etc/banner.conf': 'managed\n' })),
    );
    expect(await fleet.cli('delete', 'File', 'banner', '--wait')).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('belongs to the source e2e: ') as string,
    });
    expect(await fleet.cli('delete', 'File', 'banner', '--take-over', '--wait')).toMatchObject({ code: 0 });
    expect(fleet.files()).toEqual(fleet.filesWith((node) => appOn(node, 'v5')));
  });

  test('in the end no node is deferred, no lease is open, and no action was needed', async () => {
    const { fleet } = stage;
    await until(
      async () => [...(await fleet.client.list('leases')).values()].every(({ phase }) => phase === 'released'),
      'every lease is released',
    );
    await until(
      async () =>
        [...(await fleet.client.list('status')).values()].every(
          ({ hash, desired, deferred }) => hash === desired && deferred === '',
        ),
      'every node has its config',
    );
    const actions = (await fleet.events('node.lease.granted.>')).flatMap(({ body }) =>
      (body as { readonly actions: readonly Action[] }).actions.map(({ kind }) => kind),
    );
    expect([...new Set(actions)]).toEqual(['none']);
  });
});
