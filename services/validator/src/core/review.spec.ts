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
  missingObjects: new Set(['b'.repeat(64)]),
  policies,
});
const FILES = ['kind:File', 'action:restart'];

describe('a config in a change', () => {
  it('is accepted without a warning if the node can run it', () => {
    expect(atOnce(reviewTargets({ n0: to('motd-2', 'motd'), n1: to('motd', '') }, material(FILES)))).toEqual({
      did: 'review-change',
      reasons: [],
      warnings: [],
      incompatible: [],
    });
  });

  it('is refused if the node cannot run it, also as its first config', () => {
    for (const from of ['motd', '']) {
      const { reasons, incompatible } = atOnce(reviewTargets({ n0: to('more', from) }, material(FILES)));
      expect(reasons).toMatchObject([{ fragment: 'Directory/srv', field: 'kind', code: 'capability', nodes: ['n0'] }]);
      expect(incompatible).toEqual([]);
    }
  });

  it("is not refused for faults that the node's config already has: such a node is incompatible", () => {
    expect(atOnce(reviewTargets({ n0: to('motd-2', 'motd'), n1: to('motd', 'motd-2') }, material([])))).toMatchObject({
      reasons: [],
      warnings: [{ fragment: 'File/motd', field: 'kind', code: 'incompatible', nodes: ['n0', 'n1'] }],
      incompatible: ['n0', 'n1'],
    });
  });

  it('is refused for new faults besides old ones, and the node is then not incompatible', () => {
    const { reasons, incompatible } = atOnce(reviewTargets({ n0: to('more', 'motd') }, material([])));
    expect(reasons.map((one) => one.fragment)).toEqual(['Directory/srv']);
    expect(incompatible).toEqual([]);
  });

  it('is refused if the same fragment has another fault', () => {
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

  it('gets one warning for all nodes if a part of it does not apply, and none if that was so before', () => {
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

  it("that is missing from the bucket is a reason with the node's name, and the others are still reviewed", () => {
    const { reasons } = atOnce(reviewTargets({ n0: to('gone', 'motd'), n1: to('more', 'motd') }, material(FILES)));
    expect(reasons.map(({ fragment: id, field, code, nodes }) => [id, field, code, nodes])).toEqual([
      ['', '', 'config-missing', ['n0']],
      ['Directory/srv', 'kind', 'capability', ['n1']],
    ]);
  });

  it('is reviewed like a first config if the previous one is missing from the bucket', () => {
    expect(atOnce(reviewTargets({ n0: to('more', 'gone') }, material(FILES))).reasons).toMatchObject([
      { fragment: 'Directory/srv' },
    ]);
  });

  it('is refused for an action that the node cannot take, with the rule that requires it and the fragment', () => {
    const { reasons, incompatible } = atOnce(
      reviewTargets({ 'web-1': to('boot', ''), n1: to('boot', '') }, material(['kind:File'], [rules])),
    );
    expect(reasons.map(({ code, message, nodes }) => [code, wantsOf(message), nodes])).toEqual([
      [
        'capability',
        expect.stringMatching(/ for \/boot\/cmdline \(DisruptionPolicy\/rules files \/boot\)$/) as string,
        ['web-1'],
      ],
    ]);
    expect(incompatible).toEqual([]);
  });

  it('names every rule that requires an impossible action, and no other', () => {
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
    expect(reasons.map(({ message }) => wantsOf(message))).toEqual([
      'the change needs restart for /boot/cmdline (DisruptionPolicy/rules files /boot)',
      'the change needs restart for /etc/motd (DisruptionPolicy/rules files /etc/motd)',
    ]);
    const withRestart = material(['kind:File', 'action:restart'], [two]);
    const other = atOnce(reviewTargets({ 'web-1': to('boot', '') }, withRestart)).reasons;
    expect(other.map(({ message }) => wantsOf(message))).toEqual([
      'the change needs daemon-reload for /etc/motd (DisruptionPolicy/rules files /etc/motd)',
    ]);
  });
});

const wantsOf = (message: string): string => message.split(', which')[0] as string;

describe('a config outside rollouts', () => {
  it('is reviewed completely, with the reasons for each node', () => {
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

describe('content in the object store', () => {
  const stored = (sha256: string): Config => ({
    fragments: [entry('File', 'image', { path: '/image', contentFrom: { object: 'x.tar', sha256 } })],
  });
  const configs: Readonly<Record<string, Config>> = {
    here: stored('a'.repeat(64)),
    missing: stored('b'.repeat(64)),
    more: { fragments: [...stored('b'.repeat(64)).fragments, file('motd')] },
  };
  const given = { ...material(FILES), config: (hash: string) => configs[hash] };

  it('must be there before a change refers to it', () => {
    expect(atOnce(reviewTargets({ n0: to('here', '') }, given)).reasons).toEqual([]);
    expect(atOnce(reviewTargets({ n0: to('missing', 'here') }, given)).reasons).toEqual([
      {
        fragment: 'File/image',
        field: 'spec.contentFrom',
        code: 'missing-object',
        message: `the object store has no x.tar with sha256 ${'b'.repeat(64)}: upload the file with sluice upload`,
        nodes: ['n0'],
      },
    ]);
  });

  it('does not reject a change that does not touch it', () => {
    expect(atOnce(reviewTargets({ n0: to('more', 'missing') }, given))).toMatchObject({
      reasons: [],
      incompatible: ['n0'],
    });
  });
});
