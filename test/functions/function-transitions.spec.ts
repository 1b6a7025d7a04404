import fc from 'fast-check';
import type { ConfigEntry } from '#libs/contracts';
import { FUNCTION_KINDS } from '#libs/manifests/lean';
import { FunctionClient } from '../../services/applier/src/shell/functions/function-client.js';
import { functionBackends } from '../../services/applier/src/shell/functions/function-backend.js';
import type { Backend } from '../../services/applier/src/shell/ports.js';
import { entry } from './objects.fixture.js';
import { FunctionStandIn } from '../../cli/src/demo/functions/stand-in.js';

/**
 * Changes from any config to any other, in the order of an applier: first everything that is not wanted any more is
 * deleted, whatever still refers to it, then everything is applied kind by kind. The program may be killed at any call,
 * and starts over.
 */

let replica: FunctionStandIn;
beforeAll(async () => void (replica = await FunctionStandIn.start()));
afterAll(() => replica.close());

const order = FUNCTION_KINDS.map(({ kind }) => kind);
const some = <T>(atLeast: number, ...all: readonly T[]): fc.Arbitrary<T[]> =>
  fc.subarray([...all], { minLength: atLeast });
const pick = fc.nat();

/** Objects of all services, whose names, connections and references move between them. */
const config: fc.Arbitrary<readonly ConfigEntry[]> = fc
  .record({
    policies: some(1, 'p1', 'p2', 'p3'),
    ruleNames: some(1, 'p1', 'p2', 'p3', 'r1', 'r2'),
    zones: some(1, 'z1', 'z2', 'z3'),
    forwardings: some(0, 'f1', 'f2'),
    redirects: some(0, 'x1', 'x2'),
    proposals: some(1, 'q1', 'q2'),
    peers: some(2, 'h1', 'h2', 'h3', 'q2'),
    connections: fc.array(fc.nat(11), { minLength: 5, maxLength: 5 }),
    nats: some(0, 'n1', 'n2'),
    choice: fc.array(pick, { minLength: 12, maxLength: 12 }),
  })
  .map((drawn) => {
    let next = 0;
    const one = <T>(list: readonly T[]): T => list[(drawn.choice[next++ % 12] as number) % list.length] as T;
    const policies = drawn.policies.map((name) =>
      entry('Mwan3Policy', name, { members: [{ network: one(['wan1', 'wan2']), metric: 1, weight: 1 }] }),
    );
    const rules = drawn.ruleNames
      .filter((name) => !drawn.policies.includes(name))
      .map((name) => entry('Mwan3Rule', name, { policy: one(drawn.policies) }));
    const zones = drawn.zones.map((name) => entry('FirewallZone', name, { network: [one(['lan', 'wan1'])] }));
    const forwardings = drawn.forwardings.map((name) =>
      entry('FirewallForwarding', name, { src: one(drawn.zones), dest: one(drawn.zones) }),
    );
    const redirects = drawn.redirects.map((name) =>
      one([true, false])
        ? entry('FirewallSNAT', name, { dest: one(drawn.zones), src_dip: '192.0.2.5' })
        : entry('FirewallDNAT', name, { src: one(drawn.zones) }),
    );
    const proposals = drawn.proposals.map((name) =>
      entry('IpsecProposal', name, {
        encryption_algorithm: one(['aes128', 'aes256']),
        hash_algorithm: 'sha256',
        dh_group: 'x448',
      }),
    );
    const names = drawn.peers.filter((name) => !drawn.proposals.includes(name));
    const peers = names.flatMap((name, at) => {
      const own = drawn.connections.flatMap((peer, i) => (peer % names.length === at ? [`c${i}`] : []));
      const spec = {
        remote: 'any',
        authentication_method: 'psk',
        pre_shared_key: 'k',
        crypto_proposal: [one(drawn.proposals)],
        connections: own.map((connection) => ({ name: connection, conn_type: 'tunnel', mode: 'add' })),
      };
      return own.length === 0 ? [] : [entry(one(['IpsecHost', 'IpsecSite']), name, spec)];
    });
    const nats = drawn.nats.map((name) =>
      entry('CNFNAT', name, { target: 'MASQUERADE', dest: one(['eth0', 'net1', '#default']) }),
    );
    return [...policies, ...rules, ...zones, ...forwardings, ...redirects, ...proposals, ...peers, ...nats];
  });

/** As an applier does it: everything again, from the start, after each kill. */
async function change(before: readonly ConfigEntry[], after: readonly ConfigEntry[]): Promise<readonly string[]> {
  const client = new FunctionClient({
    baseUrl: replica.baseUrl,
    user: 'root',
    password: 'secret',
    callTimeoutMs: 20_000,
  });
  try {
    const backends = new Map(functionBackends(client, { dependencyMs: 0 }).map((one) => [one.kind, one]));
    const backendOf = ({ kind }: Pick<ConfigEntry, 'kind'>): Backend => backends.get(kind) as Backend;
    const keyOf = (one: ConfigEntry): string => backendOf(one).resources(one)[0] as string;
    const kept = new Set(after.map(keyOf));
    const gone = before.filter((one) => !kept.has(keyOf(one))).toSorted((a, b) => (keyOf(a) < keyOf(b) ? 1 : -1));
    for (const one of gone) await backendOf(one).restore(keyOf(one), { kind: one.kind, was: null, made: [] });
    const sorted = after.toSorted(
      (a, b) => order.indexOf(a.kind) - order.indexOf(b.kind) || (keyOf(a) < keyOf(b) ? -1 : 1),
    );
    for (const one of sorted) await backendOf(one).apply(one, () => Infinity);
    const differences = [
      ...(await Promise.all(gone.map((one) => backendOf(one).differsFromOriginal(keyOf(one), null)))),
      ...(await Promise.all(sorted.map((one) => backendOf(one).differs(one)))),
    ];
    return differences.filter((how) => how !== undefined);
  } finally {
    await client.close();
  }
}

test('every change from one config to another ends as wanted, also if it is killed', async () => {
  const kills = fc.array(fc.record({ calls: fc.integer({ min: 1, max: 40 }), isLastDone: fc.boolean() }), {
    maxLength: 3,
  });
  await fc.assert(
    fc.asyncProperty(config, config, kills, async (before, after, deaths) => {
      replica.heal();
      replica.empty();
      expect(await change([], before)).toEqual([]);
      for (const { calls, isLastDone } of deaths) {
        Object.assign(replica.troubles, { deadAfterCalls: calls, isLastDone });
        await change(before, after).catch(() => undefined);
        replica.heal();
      }
      expect(await change(before, after)).toEqual([]);
      const objects = [...new Set(FUNCTION_KINDS.map(({ path }) => path))].flatMap((path) => replica.config.list(path));
      expect(objects.map(({ name }) => String(name)).sort()).toEqual(after.map(({ name }) => name).sort());
    }),
    { numRuns: 80 },
  );
});
