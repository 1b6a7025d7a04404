import type { ConfigEntry, Fragment } from '#libs/contracts';
import { FUNCTION_KINDS } from '#libs/manifests';
import { effectivePolicy, NO_POLICY, outcomeOfReview, planActions, reviewConfig } from '../index.js';

const entry = (kind: string, name: string, spec: object): ConfigEntry => ({
  kind,
  name,
  spec: spec as ConfigEntry['spec'],
});
const replica = { name: 'edge-1', capabilities: FUNCTION_KINDS.map(({ kind }) => `kind:${kind}`) };
const review = (...fragments: ConfigEntry[]) => reviewConfig({ fragments }, replica);

const zone = (name: string) => entry('FirewallZone', name, { network: ['lan'] });
const policy = entry('Mwan3Policy', 'all', { members: [{ network: 'wan1', metric: 1, weight: 1 }] });
const rule = entry('Mwan3Rule', 'https', { policy: 'all' });
const proposal = entry('IpsecProposal', 'strong', {
  encryption_algorithm: 'aes256',
  hash_algorithm: 'sha256',
  dh_group: 'modp4096',
});
const route = entry('CNFRoute', 'branch', { dst: 'default', dev: 'eth0' });

test('a SNAT and a DNAT of one name conflict, because they are one object on the function', () => {
  const snat = entry('FirewallSNAT', 'a', { dest: 'out', src_dip: '192.0.2.1' });
  const dnat = entry('FirewallDNAT', 'a', { src: 'out' });
  expect(review(zone('out'), snat, dnat)).toMatchObject([
    {
      fragment: 'FirewallDNAT/a',
      code: 'conflict',
      message: 'FirewallSNAT/a and FirewallDNAT/a both set firewall redirect a',
    },
  ]);
  expect(review(zone('out'), snat, { ...dnat, name: 'b' })).toEqual([]);
});

test('a connection with the name of a proposal conflicts, because both are sections of one file', () => {
  const peer = entry('IpsecHost', 'h', {
    remote: 'any',
    authentication_method: 'psk',
    pre_shared_key: 'k',
    crypto_proposal: ['strong'],
    connections: [{ name: 'strong', conn_type: 'tunnel', mode: 'start' }],
  });
  expect(review(proposal, peer)).toMatchObject([{ message: expect.stringContaining('both set ipsec section strong') }]);
});

test('peers of one node agree on how traffic enters the tunnel, because a function has one switch', () => {
  const peer = (name: string, type?: string) =>
    entry('IpsecHost', name, {
      remote: 'any',
      authentication_method: 'psk',
      pre_shared_key: 'k',
      crypto_proposal: ['strong'],
      connections: [{ name: `${name}_1`, conn_type: 'tunnel', mode: 'start' }],
      ...(type === undefined ? {} : { type }),
    });
  expect(review(proposal, peer('a'), peer('b', 'policy-based'))).toEqual([]);
  expect(review(proposal, peer('a'), peer('b', 'VTI-based'))).toMatchObject([
    {
      fragment: 'IpsecHost/b',
      field: 'spec.type',
      message: 'is VTI-based, and that of IpsecHost/a is policy-based: a function has only one for all of them',
    },
  ]);
});

test('no object has the name of an interface in its config file', () => {
  expect(review(policy, { ...rule, name: 'wan1' })).toMatchObject([
    { fragment: 'Mwan3Rule/wan1', field: 'metadata.name', message: expect.stringContaining('Mwan3Policy/all uses') },
  ]);
});

test('a rule without its policy waits for it, and a policy that is in use cannot be deleted', () => {
  const reasons = review(rule);
  expect(reasons).toMatchObject([{ fragment: 'Mwan3Rule/https', code: 'missing-reference', needs: 'Mwan3Policy/all' }]);
  expect(outcomeOfReview(reasons, { applied: ['Mwan3Rule/https'], deleted: [] }, false).needs).toEqual([
    'Mwan3Policy/all',
  ]);
  const deletion = outcomeOfReview(reasons, { applied: [], deleted: ['Mwan3Policy/all'] }, false);
  expect(deletion).toMatchObject({
    needs: [],
    reasons: [{ message: expect.stringContaining('change or delete Mwan3Rule/https first') }],
  });
  expect(review(rule, policy)).toEqual([]);
});

test('a change restarts or reloads each service once, and nothing for what takes effect at once', () => {
  const actions = (...fragments: ConfigEntry[]) => planActions({ fragments: [] }, { fragments }, NO_POLICY).actions;
  expect(actions(policy, rule)).toEqual([{ kind: 'restart', unit: 'mwan3' }]);
  expect(actions(zone('a'), zone('b'))).toEqual([{ kind: 'reload', unit: 'firewall' }]);
  expect(actions(route)).toEqual([{ kind: 'none' }]);
  expect(actions(zone('a'), proposal, policy, rule, route)).toEqual([
    { kind: 'reload', unit: 'firewall' },
    { kind: 'restart', unit: 'ipsec' },
    { kind: 'restart', unit: 'mwan3' },
  ]);
});

test('no policy drains or reboots for an object of a function', () => {
  const spec = { nodeSelector: {}, default: [{ kind: 'drain' }, { kind: 'reboot' }] };
  const strict = effectivePolicy(
    [{ kind: 'DisruptionPolicy', name: 'p', labels: {}, spec } as unknown as Fragment],
    {},
  );
  for (const { kind } of FUNCTION_KINDS) {
    const { actions } = planActions({ fragments: [] }, { fragments: [entry(kind, 'a', {})] }, strict);
    expect(actions.filter((action) => action.kind === 'drain' || action.kind === 'reboot')).toEqual([]);
  }
});
