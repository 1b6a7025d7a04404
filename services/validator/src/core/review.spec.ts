import type { Config, ConfigEntry, Fragment } from '#libs/contracts';
import { atOnce } from '#libs/engine';
import { fragment } from '#libs/testing';
import { reviewNodes, reviewTargets, type Material } from './review.js';
import { to } from './validator.fixture.js';

const entry = (kind: string, name: string, spec: object): ConfigEntry => ({
  kind,
  name,
  spec: spec as ConfigEntry['spec'],
});
const file = (name: string, content = ''): ConfigEntry => entry('File', name, { path: `/etc/${name}`, content });
const CONFIGS: Readonly<Record<string, Config>> = {
  motd: { fragments: [file('motd')] },
  'motd-2': { fragments: [file('motd', 'welcome')] },
  more: { fragments: [file('motd'), entry('Directory', 'srv', { path: '/srv' })] },
  probed: { fragments: [file('motd'), entry('Probe', 'p', { exec: { argv: ['true'] } })] },
  boot: { fragments: [entry('File', 'boot', { path: '/boot/cmdline', content: 'quiet' }), file('motd')] },
};
const rules: Fragment = fragment('DisruptionPolicy', 'rules', {
  nodeSelector: { matchLabels: { role: 'web' } },
  default: [{ kind: 'none' }],
  files: [
    { path: '/boot', actions: [{ kind: 'reboot' }] },
    { path: '/etc/motd', actions: [{ kind: 'restart', unit: 'getty' }] },
  ],
} as never);

const material = (capabilities: readonly string[], policies: readonly Fragment[] = []): Material => ({
  config: (hash) => CONFIGS[hash],
  capabilities: () => capabilities,
  labels: (node): Readonly<Record<string, string>> => (node.startsWith('web') ? { role: 'web' } : {}),
  policies,
});
const FILES = ['kind:File', 'action:restart'];

describe('what a change leads to', () => {
  it('is no reason and no wonder where the node can do it', () => {
    expect(atOnce(reviewTargets({ n0: to('motd-2', 'motd'), n1: to('motd', '') }, material(FILES)))).toEqual({
      did: 'review-change',
      reasons: [],
      warnings: [],
      incompatible: [],
    });
  });

  it('is refused for what the node cannot do, also as its first config', () => {
    for (const from of ['motd', '']) {
      const { reasons, incompatible } = atOnce(reviewTargets({ n0: to('more', from) }, material(FILES)));
      expect(reasons).toMatchObject([{ fragment: 'Directory/srv', field: 'kind', code: 'capability', nodes: ['n0'] }]);
      expect(incompatible).toEqual([]);
    }
  });

  it('is not refused for what the node has already and cannot do: such a node is incompatible', () => {
    expect(atOnce(reviewTargets({ n0: to('motd-2', 'motd'), n1: to('motd', 'motd-2') }, material([])))).toMatchObject({
      reasons: [],
      incompatible: ['n0', 'n1'],
    });
  });

  it('is refused for what it adds to old faults, and the node is then not called incompatible', () => {
    const { reasons, incompatible } = atOnce(reviewTargets({ n0: to('more', 'motd') }, material([])));
    expect(reasons.map((one) => one.fragment)).toEqual(['Directory/srv']);
    expect(incompatible).toEqual([]);
  });

  it('takes the same fragment with another fault for a new one', () => {
    const configs: Record<string, Config> = {
      ok: { fragments: [entry('Probe', 'p', { tcp: { port: 80 } })] },
      bad: { fragments: [entry('Probe', 'p', { exec: { argv: ['true'] } })] },
    };
    const { reasons } = atOnce(
      reviewTargets({ n0: to('bad', 'ok') }, { ...material([]), config: (hash) => configs[hash] }),
    );
    expect(reasons.map(({ fragment: id, field, message }) => [id, field, message.split(' ').at(-1)])).toEqual([
      ['Probe/p', 'spec.exec', 'probe:exec'],
    ]);
  });

  it('is warned of where a part of it does not hold, once for all nodes, and not again while it stays so', () => {
    const part = (name: string, seq: number, mtu: number): ConfigEntry => entry('Vrf', name, { vrf: 'red', seq, mtu });
    const configs: Record<string, Config> = {
      two: { fragments: [part('a', 1, 1500), part('b', 2, 9000)] },
      more: { fragments: [part('a', 1, 1500), part('b', 2, 9000), file('motd')] },
    };
    const all = {
      ...material(['kind:Vrf', 'action:reboot', ...FILES]),
      config: (hash: string) => configs[hash],
    };
    const { reasons, warnings } = atOnce(reviewTargets({ n0: to('two', ''), n1: to('two', '') }, all));
    expect(reasons).toEqual([]);
    expect(warnings).toMatchObject([{ fragment: 'Vrf/b', field: 'spec.mtu', code: 'overruled', nodes: ['n0', 'n1'] }]);
    expect(atOnce(reviewTargets({ n0: to('more', 'two') }, all)).warnings).toEqual([]);
  });

  it('that is in no bucket is a reason that names the node, and the others are reviewed all the same', () => {
    const { reasons } = atOnce(reviewTargets({ n0: to('gone', 'motd'), n1: to('more', 'motd') }, material(FILES)));
    expect(reasons.map(({ fragment: id, field, code, nodes }) => [id, field, code, nodes])).toEqual([
      ['', '', 'config-missing', ['n0']],
      ['Directory/srv', 'kind', 'capability', ['n1']],
    ]);
  });

  it('from a config that is in no bucket any more is reviewed as a first one', () => {
    expect(atOnce(reviewTargets({ n0: to('more', 'gone') }, material(FILES))).reasons).toMatchObject([
      { fragment: 'Directory/srv' },
    ]);
  });

  it('is refused for an action that the node cannot take, by the rule that asks for it and what it is about', () => {
    const { reasons, incompatible } = atOnce(
      reviewTargets({ 'web-1': to('boot', ''), n1: to('boot', '') }, material(['kind:File'], [rules])),
    );
    expect(reasons.map(({ fragment: rule, field, code, nodes }) => [rule, field, code, nodes])).toEqual([
      ['DisruptionPolicy/rules files /boot', '/boot/cmdline', 'capability', ['web-1']],
    ]);
    expect(incompatible).toEqual([]);
  });

  it('names every rule that asks for an action which cannot be taken, and no other', () => {
    const two = {
      ...rules,
      spec: {
        ...rules.spec,
        files: [
          { path: '/boot', actions: [{ kind: 'restart', unit: 'b' }] },
          { path: '/etc/motd', actions: [{ kind: 'restart', unit: 'm' }, { kind: 'daemon-reload' }] },
        ],
      },
    } as unknown as Fragment;
    const { reasons } = atOnce(
      reviewTargets({ 'web-1': to('boot', '') }, material(['kind:File', 'action:daemon-reload'], [two])),
    );
    expect(reasons.map(({ fragment: rule, field }) => [rule, field])).toEqual([
      ['DisruptionPolicy/rules files /boot', '/boot/cmdline'],
      ['DisruptionPolicy/rules files /etc/motd', '/etc/motd'],
    ]);
    expect(
      atOnce(reviewTargets({ 'web-1': to('boot', '') }, material(['kind:File', 'action:restart'], [two]))).reasons,
    ).toMatchObject([{ fragment: 'DisruptionPolicy/rules files /etc/motd' }]);
  });
});

describe('what nodes have outside rollouts', () => {
  it('is reviewed whole: each node is told its own reasons, none if it is well', () => {
    const reviewed = atOnce(
      reviewNodes(
        [
          { node: 'n0', hash: 'motd' },
          { node: 'n1', hash: 'more' },
          { node: 'n2', hash: 'gone' },
        ],
        material(FILES),
      ),
    );
    expect(reviewed.did).toBe('review-nodes');
    expect(
      [...reviewed.reasons].map(([node, reasons]) => [
        node,
        reasons.map(({ fragment: id, code, nodes }) => [id, code, nodes]),
      ]),
    ).toEqual([
      ['n0', []],
      ['n1', [['Directory/srv', 'capability', ['n1']]]],
      ['n2', [['', 'config-missing', ['n2']]]],
    ]);
  });
});
