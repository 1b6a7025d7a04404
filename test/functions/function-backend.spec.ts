import type { ConfigEntry } from '#libs/contracts';
import { FUNCTION_KINDS, type FunctionKind } from '#libs/manifests/lean';
import { FunctionClient } from '../../services/applier/src/shell/functions/function-client.js';
import { functionBackends } from '../../services/applier/src/shell/functions/function-backend.js';
import type { ObjectOptions } from '../../services/applier/src/shell/functions/function-objects.js';
import { ResourceSteps } from '../../services/applier/src/shell/resource-steps.js';
import type { Item } from '../../services/applier/src/core/index.js';
import { UnreachableError, type Backend, type CheckContext } from '../../services/applier/src/shell/ports.js';
import { entry, INSIDE, OUTSIDE, POLICY, PROPOSAL, SAMPLES, type Sample } from './objects.fixture.js';
import { FunctionStandIn } from '../../cli/src/demo/functions/stand-in.js';

const CALL_MS = 20_000;
const endless = (): number => Infinity;

/** One program that works on a replica. */
class Program {
  private readonly client: FunctionClient;
  private readonly backends: ReadonlyMap<string, Backend>;
  constructor(baseUrl: string, { callMs = CALL_MS, ...options }: ObjectOptions & { readonly callMs?: number } = {}) {
    this.client = new FunctionClient({ baseUrl, user: 'root', password: 'secret', callTimeoutMs: callMs });
    const backends = functionBackends(this.client, { listMs: 0, dependencyMs: 0, ...options });
    this.backends = new Map(backends.map((backend) => [backend.kind, backend]));
  }

  get all(): ReadonlyMap<string, Backend> {
    return this.backends;
  }
  of(kind: string): Backend {
    return this.backends.get(kind) as Backend;
  }
  async apply(...entries: readonly ConfigEntry[]): Promise<void> {
    for (const one of entries) await this.of(one.kind).apply(one, endless);
  }
  async delete(...entries: readonly ConfigEntry[]): Promise<void> {
    for (const one of entries)
      await this.of(one.kind).restore(this.keyOf(one), { kind: one.kind, was: null, made: [] });
  }
  differs(one: ConfigEntry): Promise<string | undefined> {
    return this.of(one.kind).differs(one);
  }
  keyOf(one: ConfigEntry): string {
    return this.of(one.kind).resources(one)[0] as string;
  }
  close(): Promise<void> {
    return this.client.close();
  }
}

let replica: FunctionStandIn;
let program: Program;
const programs: Program[] = [];
const start = (options?: ObjectOptions & { readonly callMs?: number }): Program => {
  const made = new Program(replica.baseUrl, options);
  programs.push(made);
  return made;
};
beforeEach(async () => {
  replica = await FunctionStandIn.start();
  program = start();
});
afterEach(async () => {
  for (const one of programs.splice(0)) await one.close();
  await replica.close();
});

const rowOf = (kind: string): FunctionKind => FUNCTION_KINDS.find((row) => row.kind === kind) as FunctionKind;
const named = (kind: string, name: string): readonly Readonly<Record<string, unknown>>[] =>
  replica.config.list(rowOf(kind).path).filter((object) => object['name'] === name);

test('there is a sample of every kind', () => {
  expect(SAMPLES.map(({ kind }) => kind)).toEqual(FUNCTION_KINDS.map(({ kind }) => kind));
});

describe.each(SAMPLES)('$kind', ({ kind, spec, changed, needs }: Sample) => {
  const first = entry(kind, 'a1', spec);
  const second = entry(kind, 'a1', changed);
  const row = rowOf(kind);
  const there = (): readonly Readonly<Record<string, unknown>>[] => named(kind, 'a1');
  beforeEach(async () => {
    await program.apply(...needs);
    replica.calls.length = 0;
  });

  test('it is created once, and then nothing is written', async () => {
    expect(await program.differs(first)).toBe('it is missing');
    await program.apply(first);
    expect(replica.writes).toEqual([`POST ${row.path}`]);
    expect(there()).toHaveLength(1);
    await start().apply(first);
    expect(await start().differs(first)).toBeUndefined();
    expect(replica.writes).toHaveLength(1);
  });

  test('it is updated with one PUT', async () => {
    await program.apply(first);
    expect(await program.differs(second)).toMatch(/ is .* instead of | differs$/);
    await program.apply(second);
    expect(replica.writes).toEqual([`POST ${row.path}`, `PUT ${row.path}/a1`]);
    expect(await program.differs(second)).toBeUndefined();
    expect(await program.differs(first)).toBeDefined();
    await program.apply(first);
    expect(await start().differs(first)).toBeUndefined();
    expect(there()).toHaveLength(1);
  });

  test('it is deleted if it was not there before, and a second deletion does nothing', async () => {
    const backend = program.of(kind);
    const original = await backend.original(program.keyOf(first), first, undefined as never);
    expect(original).toEqual({ kind, was: null, made: [] });
    await program.apply(first);
    expect(await backend.differsFromOriginal(program.keyOf(first), null)).toBe('it is still there');
    await backend.restore(program.keyOf(first), original);
    expect(there()).toEqual([]);
    expect(await backend.differsFromOriginal(program.keyOf(first), null)).toBeUndefined();
    await backend.restore(program.keyOf(first), original);
    expect(replica.writes).toEqual([`POST ${row.path}`, `DELETE ${row.path}/a1`]);
  });

  test('what was there before is restored', async () => {
    await program.apply(first);
    const before = there();
    const other = start();
    // Only what the function returns can be saved: not certificates, unless they are those of the entry.
    const original = await other.of(kind).original(other.keyOf(first), first, undefined as never);
    await other.apply(second);
    expect(there()).not.toEqual(before);
    await other.of(kind).restore(other.keyOf(first), original);
    expect(there()).toEqual(before);
    expect(await other.of(kind).differsFromOriginal(other.keyOf(first), original.was)).toBeUndefined();
  });

  test('an object that a PUT lost is made again', async () => {
    await program.apply(first);
    replica.troubles.losePuts = 1;
    await program.apply(second);
    expect(await program.differs(second)).toBeUndefined();
    expect(there()).toHaveLength(1);
  });

  test('a replica that was emptied gets it again, and it counts as forgotten', async () => {
    await program.apply(first);
    expect(await program.of(kind).isForgotten?.(first)).toBe(false);
    replica.empty();
    expect(await program.of(kind).isForgotten?.(first)).toBe(true);
    await program.apply(...needs, first);
    expect(await program.differs(first)).toBeUndefined();
    expect(there()).toHaveLength(1);
  });

  test('a replica that was emptied after the last write counts as one that does not answer, once', async () => {
    await program.apply(...needs, first);
    replica.empty();
    await expect(program.differs(first)).rejects.toThrow(UnreachableError);
    expect(await program.differs(first)).toBe('it is missing');
    // What was compared since it was brought, and is gone later, was removed by somebody.
    await program.apply(...needs, first);
    expect(await program.differs(first)).toBeUndefined();
    replica.empty();
    expect(await program.differs(first)).toBe('it is missing');
  });

  test.each([false, true])(
    'killed after any call (done: %s), the next program ends with one object',
    async (isLastDone) => {
      for (const [from, to] of [
        [undefined, first],
        [first, second],
        [second, undefined],
      ] as const) {
        for (let calls = 1; calls <= 6; calls++) {
          replica.heal();
          replica.empty();
          await start().apply(...needs, ...(from === undefined ? [] : [from]));
          Object.assign(replica.troubles, { deadAfterCalls: calls, isLastDone });
          const killed = start();
          await (to === undefined ? killed.delete(first) : killed.apply(to)).catch(() => undefined);
          replica.heal();
          const next = start();
          await (to === undefined ? next.delete(first) : next.apply(to));
          expect(there()).toHaveLength(to === undefined ? 0 : 1);
          if (to !== undefined) expect(await next.differs(to)).toBeUndefined();
        }
      }
    },
  );

  test('a call that was carried out and not answered is not repeated', async () => {
    replica.troubles.silent = 1;
    await program.apply(first);
    expect(replica.writes).toEqual([`POST ${row.path}`]);
    replica.troubles.silent = 1;
    await program.apply(second);
    expect(replica.writes).toHaveLength(2);
    replica.troubles.silent = 1;
    await program.delete(first);
    expect(replica.writes).toHaveLength(3);
    expect(there()).toEqual([]);
  });

  if (row.post === 'doubles') {
    test('two objects of the name become one', async () => {
      await program.apply(first);
      const double = { ...there()[0] };
      expect(replica.config.post(row.path, double)).toBeUndefined();
      expect(await program.differs(first)).toBe('there are 2 of it');
      await program.apply(first);
      expect(there()).toHaveLength(1);
      expect(await program.differs(first)).toBeUndefined();
      replica.config.post(row.path, double);
      await program.delete(first);
      expect(there()).toEqual([]);
    });
  }

  if (needs.length > 0) {
    test('without what it refers to, it is refused as a fault of the node, and nothing is left', async () => {
      replica.empty();
      await expect(start().apply(first)).rejects.toMatchObject({
        fault: 'node',
        message: expect.stringMatching(/ answered (428|400) .*does not have/),
      });
      expect(there()).toEqual([]);
      const context: CheckContext = {
        config: { fragments: [first] },
        from: { fragments: [] },
        taken: new Set(),
        places: new Map(),
        leftMs: () => Infinity,
      };
      await expect(program.of(kind).check(first, context)).rejects.toMatchObject({
        fault: 'node',
        message: expect.stringContaining('apply it first'),
      });
      await program.of(kind).check(first, { ...context, config: { fragments: [first, ...needs] } });
      expect(replica.writes).toHaveLength(1);
    });

    test('what it refers to is deleted as soon as nothing refers to it', async () => {
      await program.apply(first);
      await program.delete(...needs);
      for (const need of needs) {
        expect(await program.of(need.kind).differsFromOriginal(program.keyOf(need), null)).toMatch(
          /still there: .* is used/,
        );
      }
      await program.delete(first);
      for (const need of needs) expect(named(need.kind, need.name)).toEqual([]);
    });
  }
});

test('a policy is deleted although the rule that used it is changed later in the same work', async () => {
  const other = { ...POLICY, name: 'other' };
  const rule = (policy: string) => entry('Mwan3Rule', 'r', { policy });
  await program.apply(POLICY, rule('all'));
  await program.delete(POLICY);
  await program.apply(other, rule('other'));
  expect(replica.config.list('mwan3/v1/policies').map(({ name }) => name)).toEqual(['other']);
});

test('a connection can move from one peer to another, in any order', async () => {
  const peer = (name: string, ...connections: readonly string[]) =>
    entry('IpsecHost', name, {
      remote: 'any',
      authentication_method: 'psk',
      pre_shared_key: 'k',
      crypto_proposal: ['strong'],
      connections: connections.map((one) => ({ name: one, conn_type: 'tunnel', mode: 'add' })),
    });
  await program.apply(PROPOSAL, peer('a', 'c2'), peer('b', 'c1', 'c3'));
  const wanted = [peer('a', 'c1', 'c2'), peer('b', 'c3')];
  await program.apply(...wanted);
  for (const one of wanted) expect(await program.differs(one)).toBeUndefined();
});

test('a PUT that the function refuses brings the object back, and says why', async () => {
  await program.apply(INSIDE, entry('FirewallForwarding', 'f', { src: 'inside', dest: 'inside' }));
  const before = replica.config.list('firewall/v1/forwardings');
  await expect(program.apply(entry('FirewallForwarding', 'f', { src: 'inside', dest: 'gone' }))).rejects.toMatchObject({
    fault: 'node',
    message: expect.stringContaining('Zone[gone] is not definied'),
  });
  expect(replica.config.list('firewall/v1/forwardings')).toEqual(before);
});

test('what refers to something that the replica has just lost is not to blame', async () => {
  const rule = entry('Mwan3Rule', 'a1', { policy: POLICY.name });
  await program.apply(POLICY);
  replica.empty();
  await expect(program.apply(rule)).rejects.toThrow(
    new UnreachableError('the replica has lost its Mwan3Policy/all in the middle of the work: it has restarted'),
  );
  await program.apply(POLICY, rule);
  expect(await program.differs(rule)).toBeUndefined();
});

test('content that the function refuses is a fault of the content', async () => {
  const bad = entry('CNFRoute', 'r', { dst: '2001:db8::/32', dev: 'eth0' });
  await expect(program.apply(bad)).rejects.toMatchObject({
    fault: 'content',
    message: expect.stringContaining('Field[dst]'),
  });
});

describe('a collection that is answered in a way that nobody understands', () => {
  const POLICIES = 'mwan3/v1/policies';
  const answers: readonly (readonly [string, number, string, RegExp])[] = [
    ['500', 500, 'out of memory', /policies(\/all)? is answered 500 \(out of memory\)$/],
    ['400', 400, '{"message":"Bad request URI"}', /policies(\/all)? is answered 400 \(Bad request URI\)$/],
    ['403', 403, 'Forbidden', /policies(\/all)? is forbidden/],
    [
      'garbage',
      200,
      '<html>',
      /policies(\/all)? is answered 200 \(<html>\), which is no answer of a network function$/,
    ],
    ['no list', 200, '{"policies":7}', /policies is answered without a list of policies$/],
    ['null', 200, 'null', /policies(\/all)? is answered without (a list of policies|an object)$/],
  ];

  test.each(answers)('%s is read once more', async (_, status, text, __) => {
    replica.troubles.collections = { [POLICIES]: { status, text, times: 1 } };
    await program.apply(POLICY);
    expect(await program.differs(POLICY)).toBeUndefined();
    replica.troubles.collections = { [POLICIES]: { status, text, times: 1 } };
    expect(await program.differs(POLICY)).toBeUndefined();
  });

  test.each(answers)('%s is like no answer, and names the collection', async (_, status, text, reason) => {
    const message = expect.stringMatching(reason) as string;
    replica.troubles.collections = { [POLICIES]: { status, text, times: Infinity } };
    const unreachable = { fault: 'unreachable', message };
    await expect(program.apply(POLICY)).rejects.toMatchObject(unreachable);
    await expect(program.of('Mwan3Policy').original(program.keyOf(POLICY), POLICY, {} as never)).rejects.toMatchObject(
      unreachable,
    );
    replica.heal();
    await program.apply(POLICY);
    const steps = new ResourceSteps(
      { rollBackWith: (work) => work() },
      program.all,
      { checkProbe: () => undefined },
      () => performance.now(),
    );
    replica.troubles.collections = { [POLICIES]: { status, text, times: Infinity } };
    const items: readonly Item[] = [{ do: 'apply', entry: POLICY }];
    expect(await steps.compare({ do: 'compare', items })).toMatchObject([{ unreachable: true }]);
    // Drift of everything else is still found.
    const checks = { config: { fragments: [] }, from: { fragments: [] }, originals: {} };
    const [found] = await steps.checkDrift({ items, checks }, new AbortController().signal);
    expect([found?.how, found?.unreachable]).toEqual([expect.stringMatching(reason), undefined]);
  });
});

test('an interface that comes later is waited for', async () => {
  const patient = start({ dependencyMs: 10_000 });
  const route = entry('CNFRoute', 'r', { dst: 'default', dev: 'late0' });
  const applied = patient.apply(route);
  await until(() => replica.writes.length > 0);
  replica.config.interfaces = ['eth0', 'late0'];
  await applied;
  expect(named('CNFRoute', 'r')).toHaveLength(1);
});

test('a certificate in a list, which the function does not return, is written by each program once', async () => {
  const site = (ca: string) =>
    entry('IpsecSite', 's', {
      ...(SAMPLES.find(({ kind }) => kind === 'IpsecSite')?.spec as object),
      shared_ca: ca,
    });
  const [one, other] = ['one', 'other'].map(
    (text) => `${Buffer.from('first!').toString('base64')}___${Buffer.from(text.padEnd(6)).toString('base64')}`,
  ) as [string, string];
  await program.apply(PROPOSAL, site(one));
  await program.apply(site(one));
  expect(replica.writes).toHaveLength(2);
  await program.apply(site(other));
  expect(replica.writes).toHaveLength(3);
  expect(await program.differs(site(other))).toBeUndefined();
});

test('certificates that somebody else put there are not overwritten, because they could not be restored', async () => {
  const sample = SAMPLES.find(({ kind }) => kind === 'IpsecSite') as Sample;
  await program.apply(PROPOSAL, entry('IpsecSite', 's', sample.spec));
  const other = entry('IpsecSite', 's', sample.changed);
  await expect(program.of('IpsecSite').original(program.keyOf(other), other, undefined as never)).rejects.toMatchObject(
    {
      fault: 'node',
      message: expect.stringContaining('delete it there first'),
    },
  );
});

test('a comparison waits until no late write of a call without an answer can come any more', async () => {
  const slow = start({ callMs: 2_000 });
  const forwarding = entry('FirewallForwarding', 'f', { src: 'outside', dest: 'outside' });
  await slow.apply(OUTSIDE, forwarding);
  replica.troubles.silent = 1;
  await slow.apply({ ...forwarding, name: 'g' });
  const comparing = slow.differs(forwarding);
  setTimeout(() => replica.config.post('firewall/v1/forwardings', { name: 'f', src: 'outside', dest: 'outside' }), 100);
  expect(await comparing).toBe('there are 2 of it');
});

test('an object that somebody else makes at the same moment is updated', async () => {
  const theirs = { name: 'all', members: [{ interface: 'wan2', metric: '9', weight: '9' }] };
  replica.onCall = (call) => {
    if (call.startsWith('POST')) replica.config.post('mwan3/v1/policies', theirs);
  };
  await program.apply(POLICY);
  expect(replica.writes).toEqual(['POST mwan3/v1/policies', 'PUT mwan3/v1/policies/all']);
  expect(await program.differs(POLICY)).toBeUndefined();
});

test('named objects are compared with one list too, and each one alone after it was written', async () => {
  const policies = Array.from({ length: 5 }, (_, i) => ({ ...POLICY, name: `p${i}` }));
  const own = start({ listMs: 600_000 });
  await own.apply(...policies);
  for (const policy of policies) expect(await own.differs(policy)).toBeUndefined();
  expect(replica.calls.filter((call) => call === 'GET mwan3/v1/policies')).toHaveLength(1);
  expect(replica.calls).toHaveLength(1 + 2 * policies.length);
  await own.delete(...policies);
  for (const policy of policies) expect(await own.differs(policy)).toBe('it is missing');
});

describe('a replica that was changed by hand in the moment before a lease', () => {
  let nowMs = 0;
  const untilMs = 60_000;
  const stepsOf = (one: Program): ResourceSteps =>
    new ResourceSteps({ rollBackWith: () => Promise.resolve() } as never, one.all, { checkProbe: never }, () => nowMs);
  const never = (): never => {
    throw new Error('no probe is here');
  };
  const how = async (steps: ResourceSteps, item: Item, sinceMs: number): Promise<readonly string[]> =>
    (await steps.compare({ do: 'compare', items: [item], untilMs, sinceMs })).map((difference) => difference.how);
  let own: Program;
  beforeEach(async () => {
    nowMs = 0;
    own = start({ listMs: 600_000, clock: () => nowMs });
    await program.apply(POLICY);
  });

  test('is not compared with what was read before the lease', async () => {
    const steps = stepsOf(own);
    const item: Item = { do: 'apply', entry: POLICY };
    expect(await how(steps, item, 0)).toEqual([]);
    await program.delete(POLICY);
    nowMs = 500;
    expect(await how(steps, item, 500)).toEqual(['it is missing']);
    replica.calls.length = 0;
    expect(await how(steps, item, 500)).toEqual(['it is missing']);
    expect(replica.calls).toEqual([]);
  });

  test('is not compared so either if all that the lease does is to restore what was there', async () => {
    const steps = stepsOf(own);
    const original = { kind: POLICY.kind, was: null, made: [] };
    const item: Item = { do: 'restore', key: own.keyOf(POLICY), original };
    await own.delete(POLICY);
    expect(await how(steps, item, 0)).toEqual([]);
    await program.apply(POLICY);
    nowMs = 500;
    expect(await how(steps, item, 500)).toEqual(['it is still there']);
  });
});

test('many objects of one collection are compared with one list', async () => {
  const rules = Array.from({ length: 10 }, (_, i) =>
    entry('CNFRouteRule', `r${i}`, { src: '10.0.0.0/8', prio: i + 1 }),
  );
  await program.apply(...rules);
  replica.calls.length = 0;
  const other = start({ listMs: 600_000 });
  await other.apply(...rules);
  for (const rule of rules) expect(await other.differs(rule)).toBeUndefined();
  expect(replica.calls).toEqual(['GET rule/v1/rules']);
});

test('what is missing is waited for once, not for each object', async () => {
  const patient = start({ dependencyMs: 1_000 });
  const route = (name: string) => entry('CNFRoute', name, { dst: 'default', dev: 'gone0' });
  await expect(patient.apply(route('a'))).rejects.toThrow('does not have');
  const tries = replica.writes.length;
  expect(tries).toBeGreaterThan(1);
  await expect(patient.apply(route('b'))).rejects.toThrow('does not have');
  expect(replica.writes).toHaveLength(tries + 1);
});

test('a network is the interface that this replica has for it', async () => {
  const own = start({ interfaceOf: (network) => (network === 'internet' ? 'wan2' : undefined) });
  const policy = (network: string) => entry('Mwan3Policy', 'p', { members: [{ network, metric: 1, weight: 1 }] });
  await own.apply(policy('internet'));
  expect(named('Mwan3Policy', 'p')).toMatchObject([{ members: [{ interface: 'wan2' }] }]);
  await expect(own.apply(policy('moon'))).rejects.toThrow('this replica has no interface for the network moon');
});

test('several replicas in trouble end with the same objects as the others', async () => {
  const troubles: readonly ((one: FunctionStandIn) => void)[] = [
    () => undefined,
    (one) => void (one.troubles.deadAfterWrites = 3),
    (one) => void (one.troubles.status = 500),
    (one) => void (one.troubles.delayMs = 600_000),
    (one) => one.empty(),
    (one) => void (one.troubles.losePuts = 2),
    (one) => one.endSessions(),
  ];
  const entries = [POLICY, INSIDE, OUTSIDE, PROPOSAL, ...SAMPLES.map(({ kind, spec }) => entry(kind, 'a1', spec))]
    .filter(({ kind }) => kind !== 'FirewallDNAT' && kind !== 'IpsecHost')
    .map((one) =>
      ['Mwan3Rule', 'IpsecProposal', 'IpsecSite'].includes(one.kind) && one.name === 'a1'
        ? { ...one, name: `${one.kind.toLowerCase()}1` }
        : one,
    )
    .toSorted((a, b) => orderOf(a) - orderOf(b));
  const replicas = await Promise.all(troubles.map(() => FunctionStandIn.start()));
  try {
    const works = replicas.map((one) => new Program(one.baseUrl, { callMs: 3_000 }));
    await Promise.all(works.map((work) => work.apply(...entries.slice(0, 6))));
    for (const [i, one] of replicas.entries()) troubles[i]?.(one);
    const ends = await Promise.allSettled(works.map((work) => work.apply(...entries)));
    expect(ends.map((end) => (end.status === 'rejected' ? (end.reason as { fault: string }).fault : 'done'))).toEqual([
      'done',
      'unreachable',
      'unreachable',
      'unreachable',
      'done',
      'done',
      'done',
    ]);
    for (const one of replicas) one.heal();
    for (const work of works) await work.apply(...entries);
    const lists = replicas.map((one) =>
      [...new Set(FUNCTION_KINDS.map(({ path }) => path))].map((path) => one.config.list(path).toSorted(byName)),
    );
    for (const list of lists) expect(list).toEqual(lists[0]);
    expect(lists[0]?.flat()).toHaveLength(entries.length);
    for (const work of works) for (const one of entries) expect(await work.differs(one)).toBeUndefined();
    await Promise.all(works.map((work) => work.close()));
  } finally {
    await Promise.all(replicas.map((one) => one.close()));
  }
});

const orderOf = ({ kind }: ConfigEntry): number => FUNCTION_KINDS.findIndex((row) => row.kind === kind);
const byName = (a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): number =>
  String(a['name']) < String(b['name']) ? -1 : 1;

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
}
