import { createHash } from 'node:crypto';
import type { Fragment } from '#libs/contracts';
import {
  compileFragments,
  planActions,
  effectivePolicy,
  renderNode,
  reviewConfig,
  type RenderedConfig,
} from '../index.js';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const fragment = (kind: string, name: string, spec: object, nodeSelector: object | undefined = {}): Fragment =>
  ({ kind, name, labels: {}, spec: { ...(nodeSelector && { nodeSelector }), ...spec } }) as Fragment;
const resolved = (name: string, ...addresses: readonly string[]): Fragment =>
  fragment('ResolvedName', name, { addresses }, undefined);
const render = (fragments: readonly Fragment[], labels: Record<string, string> = {}): RenderedConfig =>
  renderNode(compileFragments(fragments).forNode(labels), { name: 'cnf-1', labels }, sha256);

const service = fragment('CNFService', 'web', { fullname: 'db.example.com', port: 5432, dport: '15432' });
const nat = (name: string, spec: object, origin: string) => ({ kind: 'CNFNAT', name, spec, origin });
const route = (name: string, spec: object, origin: string) => ({ kind: 'CNFRoute', name, spec, origin });

describe('a composite becomes objects of the function', () => {
  test('CNFService: one NAT to the lowest address', () => {
    const { config, reasons } = render([service, resolved('db.example.com', '192.0.2.7', '192.0.2.8')]);
    expect(reasons).toEqual([]);
    const spec = { target: 'DNAT', proto: 'tcp', src_dport: '15432', dest_ip: '192.0.2.7', dest_port: 5432, index: 2 };
    expect(config.fragments).toEqual([nat('webnat', spec, 'CNFService/web')]);
    expect(reviewConfig(config, { name: 'cnf-1', capabilities: ['kind:CNFNAT'] })).toEqual([]);
  });

  test('CNFLocalService: one NAT per remote address', () => {
    const local = { localservice: '10.0.0.9', localport: 80, remoteservice: 'db.example.com', remoteport: 443 };
    const { config } = render([
      fragment('CNFLocalService', 'web', local),
      resolved('db.example.com', '192.0.2.7', '192.0.2.8'),
    ]);
    const to = { target: 'DNAT', proto: 'tcp', src_dport: 443, dest_ip: '10.0.0.9', dest_port: 80 };
    expect(config.fragments).toEqual([
      nat('webnat0', { ...to, src_dip: '192.0.2.7' }, 'CNFLocalService/web'),
      nat('webnat1', { ...to, src_dip: '192.0.2.8' }, 'CNFLocalService/web'),
    ]);
  });

  test('CNFHubSite on a hub: a route per network', () => {
    const hub = { type: 'Hub', site: 'site.example.com', subnet: '10.7.0.0/16', hubip: '10.0.0.3' };
    const { config } = render([fragment('CNFHubSite', 'a', hub), resolved('site.example.com', '192.0.2.7')]);
    const way = { dev: 'vti_10.0.0.3', table: 'default' };
    expect(config.fragments).toEqual([
      route('aroute0', { dst: '10.7.0.0/16', ...way }, 'CNFHubSite/a'),
      route('aroute1', { dst: '192.0.2.7', ...way }, 'CNFHubSite/a'),
    ]);
  });

  test('CNFHubSite on a device: a route and a NAT per network', () => {
    const device = { type: 'Device', subnet: '10.7.0.0/16', devicepip: '{{ node.labels.pip }}' };
    const { config, reasons } = render([fragment('CNFHubSite', 'a', device)], { pip: '10.9.0.1' });
    expect(reasons).toEqual([]);
    const snat = { target: 'SNAT', dest: '#source', dest_ip: '10.7.0.0/16', src_dip: '10.9.0.1', index: 1 };
    expect(config.fragments).toEqual([
      nat('asnat0', snat, 'CNFHubSite/a'),
      route('aroute0', { dst: '10.7.0.0/16', dev: '#10.9.0.1', table: 'cnf' }, 'CNFHubSite/a'),
    ]);
    expect(reviewConfig(config, { name: 'cnf-1', capabilities: ['kind:CNFNAT', 'kind:CNFRoute'] })).toEqual([]);
  });
});

test('the objects are in the order of all configs, and the hash is that of the canonical form', () => {
  const before = fragment('CNFNAT', 'a', { target: 'MASQUERADE', dest: 'eth0' });
  const after = fragment('CNFNAT', 'z', { target: 'MASQUERADE', dest: 'eth0' });
  const { config, text, hash } = render([after, service, before, resolved('db.example.com', '192.0.2.7')]);
  expect(config.fragments.map(({ name }) => name)).toEqual(['a', 'webnat', 'z']);
  expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(config)));
  expect(hash).toBe(sha256(text));
});

test('with other addresses it has another hash and another recipe', () => {
  const [one, other] = ['192.0.2.7', '192.0.2.8'].map((address) =>
    render([service, resolved('db.example.com', address)]),
  ) as [RenderedConfig, RenderedConfig];
  expect(one.hash).not.toBe(other.hash);
  expect(one.recipe).not.toBe(other.recipe);
});

test('a name without addresses is a missing reference of the fragment that people wrote', () => {
  const { config, reasons } = render([service]);
  expect(config.fragments).toEqual([]);
  expect(reasons).toMatchObject([
    {
      fragment: 'CNFService/web',
      field: 'spec.fullname',
      code: 'missing-reference',
      needs: 'ResolvedName/db.example.com',
      nodes: ['cnf-1'],
    },
  ]);
});

test('the name of an object that somebody wrote is taken', () => {
  const own = fragment('CNFNAT', 'webnat', { target: 'MASQUERADE', dest: 'eth0' });
  const { config, reasons } = render([service, own, resolved('db.example.com', '192.0.2.7')]);
  expect(reasons).toMatchObject([{ fragment: 'CNFService/web', field: 'metadata.name', code: 'conflict' }]);
  expect(reasons[0]?.message).toBe(
    'becomes CNFNAT/webnat, but there is a CNFNAT/webnat: choose another name for one of them',
  );
  expect(config.fragments.map(({ spec }) => spec['target'])).toEqual(['MASQUERADE']);
});

test('two composites that become objects of one name conflict', () => {
  const { reasons } = render([
    fragment('CNFHubSite', 'a', { type: 'Device', subnet: '10.7.0.0/16', devicepip: '10.9.0.1' }),
    fragment('CNFLocalService', 'as', { localservice: '10.0.0.1', remoteservice: '10.0.0.2' }),
  ]);
  expect(reasons).toMatchObject([
    {
      fragment: 'CNFLocalService/as',
      field: 'metadata.name',
      code: 'conflict',
      message: 'becomes CNFNAT/asnat0, but CNFHubSite/a becomes one of that name: choose another name for one of them',
    },
  ]);
});

test('what a template makes of it is checked as a whole', () => {
  const site = { type: '{{ node.labels.type }}', subnet: '10.7.0.0/16', devicepip: '10.9.0.1' };
  const of = (type: string) => render([fragment('CNFHubSite', 'a', site)], { type });
  expect(of('Device').reasons).toEqual([]);
  expect(of('Hub').reasons).toMatchObject([{ fragment: 'CNFHubSite/a', field: 'spec.hubip', code: 'required' }]);
  expect(of('hub').reasons).toMatchObject([{ field: 'spec.type', code: 'unknown-word' }]);
  expect(of('hub').config.fragments).toEqual([]);
});

test('people see the fragment that they wrote: in the plan, and in what the review says', () => {
  const before = render([service, resolved('db.example.com', '192.0.2.7')]);
  const after = render([service, resolved('db.example.com', '192.0.2.8')]);
  const { changed, because, actions } = planActions(before.config, after.config, effectivePolicy([], {}));
  expect({ changed, actions }).toEqual({ changed: ['CNFService/web'], actions: [{ kind: 'none' }] });
  expect(because).toMatchObject([{ what: 'CNFService/web', rule: 'a CNFNAT takes effect at once' }]);
  expect(reviewConfig(after.config, { name: 'cnf-1', capabilities: [] })).toMatchObject([
    {
      fragment: 'CNFService/web',
      code: 'capability',
      message: 'the node cannot do this: it did not announce kind:CNFNAT (in CNFNAT/webnat kind, which it becomes)',
    },
  ]);
});
