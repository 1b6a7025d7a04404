import { REMOTE_APPLIER, type Reason } from '#libs/contracts';
import { file, fragment, joined } from '#libs/testing';
import { changeBody, Merger } from './merger.fixture.js';

const KINDS = ['kind:FirewallRule', 'kind:Mwan3Policy', 'kind:File', 'kind:CNFNAT', 'kind:CNFRoute'];
const role = (name: string) => ({ matchLabels: { role: name } });
const rule = (name: string, target = 'DROP') =>
  fragment('FirewallRule', name, { nodeSelector: role('cnf'), src: 'wan', target });
const pool = (silentNodes?: unknown) =>
  fragment('Pool', 'cnf', { nodeSelector: role('cnf'), ...(silentNodes === undefined ? {} : { silentNodes }) });

type Content = Parameters<typeof changeBody>[0];

/** Replicas of a network function, and machines. */
function fleet(replicas: readonly string[], machines: readonly string[] = []): Merger {
  const of = (names: readonly string[], labels: Record<string, string>, capabilities: readonly string[]) =>
    names.map((node) => joined(node, labels, { capabilities }));
  const m = new Merger().given(
    ...of(replicas, { role: 'cnf' }, [...KINDS, REMOTE_APPLIER]),
    ...of(machines, { role: 'cnf' }, KINDS),
  );
  m.when();
  return m;
}
/** The warnings of a plan about being cut off. */
function warnings(m: Merger, content: Content, more: object = {}): readonly Reason[] {
  const body = { ...changeBody(content), ...more };
  m.when({ type: 'request', request: { op: 'plan', id: 'p', body, source: 'me', cursor: '', limit: 9 } });
  const [answer] = m.answers;
  const plan = answer?.ok === true ? (answer.body as Record<'warnings' | 'rejected', readonly Reason[]>) : undefined;
  const all = 'strategy' in more ? plan?.rejected : plan?.warnings;
  return (all ?? []).filter(({ code }) => code === 'may-cut-off');
}

describe('a change that can cut off targets from their applier', () => {
  it('warns if it reaches several of them, and their pool does not count silent nodes', () => {
    const [warning, ...others] = warnings(fleet(['r1', 'r2']), [rule('ssh'), pool()]);
    expect(others).toEqual([]);
    expect(warning).toMatchObject({ fragment: '', nodes: ['r1', 'r2'] });
    expect(warning?.message).toMatch(/^FirewallRule\/ssh can cut off targets .*Set silentNodes: count in the pool cnf/);
  });

  it.each([
    ['CNFService', { fullname: '192.0.2.7', port: 5432, dport: 443 }],
    ['CNFLocalService', { localservice: '192.0.2.7', remoteservice: '192.0.2.8' }],
    ['CNFHubSite', { type: 'Hub', subnet: '10.0.0.0/8', hubip: '192.0.2.9' }],
  ])('warns of a %s, which becomes objects that redirect traffic', (kind, spec) => {
    const composite = fragment(kind, 'web', { nodeSelector: role('cnf'), ...spec });
    expect(warnings(fleet(['r1', 'r2']), [composite])).toMatchObject([
      { message: expect.stringContaining(`${kind}/web can cut off targets`), nodes: ['r1', 'r2'] },
    ]);
  });

  it('is rejected for that with strict', () => {
    expect(warnings(fleet(['r1', 'r2']), [rule('ssh')], { strategy: { strict: true } })).toHaveLength(1);
  });

  it('warns of a rule that is deleted, because another one may then apply', () => {
    const m = fleet(['r1', 'r2']);
    m.commits(1, rule('ssh', 'ACCEPT'));
    expect(warnings(m, [{ gone: { kind: 'FirewallRule', name: 'ssh' } }])).toHaveLength(1);
  });

  it.each<[string, Merger, Content]>([
    ['if their pool counts silent nodes', fleet(['r1', 'r2']), [rule('ssh'), pool('count')]],
    ['if their pool counts them for a while', fleet(['r1', 'r2']), [rule('ssh'), pool({ ignoreAfter: '10m' })]],
    ['if it reaches a single target', fleet(['r1']), [rule('ssh')]],
    ['if it reaches machines, which notice it themselves', fleet([], ['m1', 'm2']), [rule('ssh')]],
    ['of kinds that cut off nobody', fleet(['r1', 'r2']), [file('motd', 'hello')]],
  ])('does not warn %s', (_, m, content) => {
    expect(warnings(m, content)).toEqual([]);
  });

  it('does not warn of a rule that is published again as it is', () => {
    const m = fleet(['r1', 'r2']);
    m.commits(1, rule('ssh', 'ACCEPT'));
    expect(warnings(m, [rule('ssh', 'ACCEPT'), file('motd', 'hello')])).toEqual([]);
    expect(warnings(m, [rule('ssh'), file('motd', 'hello')])).toHaveLength(1);
  });
});
