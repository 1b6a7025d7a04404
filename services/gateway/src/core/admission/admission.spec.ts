import type { ChangeView, Fragment, KnownBadView, NodeView } from '#libs/contracts';
import { compileFragments, renderNode } from '#libs/rules';
import { sha256 } from '../gateway.fixture.js';
import {
  answerAdmission,
  answerSteering,
  rightsNeeded,
  contentsOf,
  FINALIZER,
  readReview,
  reviewOf,
  certificateStatusOf,
  State,
  DesiredState,
  type AdmissionRequest,
  type Condition,
  type RolloutRequest,
  type Status,
} from '../index.js';
import { decide } from '../gateway.js';

const KINDS = ['kind:File', 'kind:Vrf', 'kind:Layer2Network'];
const node = (name: string, labels: object, capabilities = KINDS): NodeView =>
  ({ node: name, state: 'ready', labels, capabilities }) as unknown as NodeView;
const fileOf = (name: string, spec: object = {}, more: object = {}) => ({
  kind: 'File',
  name,
  labels: {},
  spec: { nodeSelector: {}, path: `/etc/${name}`, content: '', ...spec },
  deleting: false,
  ...more,
});
type PublishedManifest = ReturnType<typeof fileOf>;
const ask = (
  operation: AdmissionRequest['operation'],
  object: PublishedManifest | undefined,
  before?: PublishedManifest,
  groups: readonly string[] = ['dev'],
): AdmissionRequest => ({
  uid: 'u',
  operation,
  kind: 'File',
  name: (object ?? before)?.name ?? '',
  user: 'mary',
  groups,
  object,
  before,
});

/** The desired state, with nodes and objects, all of it read. */
function desiredState(
  nodes: readonly NodeView[],
  ...objects: readonly { readonly kind: string; readonly name: string; readonly spec: object }[]
): DesiredState {
  const desired = new DesiredState(sha256);
  for (const one of nodes) desired.showNode(one);
  for (const one of objects)
    desired.hear({
      uid: '',
      generation: 1,
      revision: '1',
      labels: {},
      deleting: false,
      finalizers: [],
      retry: '',
      status: undefined,
      ...one,
    });
  for (const what of ['fragments', 'nodes', 'Pool']) desired.read.add(what);
  return desired;
}
const committed = (name: string, spec: object, gone = false) =>
  ({
    fragment: { kind: 'File', name, labels: {}, spec: { nodeSelector: {}, content: '', ...spec } },
    gone,
    change: 'c1',
    ledger: 1,
  }) as never;
const THREE = [node('a', { role: 'edge' }), node('b', { role: 'edge', zone: '1' }), node('c', { role: 'core' })];
const warningsOf = (desired: DesiredState, ...request: Parameters<typeof ask>): readonly string[] => {
  const answer = answerAdmission(ask(...request), desired);
  if (answer.is !== 'allowed') throw new Error(`it is ${answer.is}`);
  return answer.warnings;
};

describe('the answer', () => {
  it('waits until everything was read, except about errors in the object itself', () => {
    expect(answerAdmission(ask('CREATE', fileOf('motd')), new DesiredState())).toEqual({ is: 'unready' });
    expect(answerAdmission(ask('CREATE', fileOf('motd', { path: 'etc' })), new DesiredState())).toMatchObject({
      is: 'invalid',
      reasons: [{ fragment: 'File/motd', field: 'spec.path', code: 'bad-path' }],
    });
  });

  it('allows objects that are being deleted or do not change, for every user and in every state', () => {
    const bad = fileOf('motd', { path: 'etc' });
    expect(answerAdmission(ask('UPDATE', { ...bad, deleting: true }, bad), new DesiredState())).toEqual({
      is: 'allowed',
      warnings: [],
    });
    expect(
      answerAdmission(
        ask('UPDATE', bad, { ...bad, spec: { content: '', path: 'etc', nodeSelector: {} } as never }),
        new DesiredState(),
      ),
    ).toEqual({ is: 'allowed', warnings: [] });
  });

  it('is based on objects, and on the committed state only if there is no object', () => {
    const desired = desiredState(THREE, fileOf('one'));
    desired.showFragment(committed('one', { path: '/etc/before' }));
    desired.showFragment(committed('two', { path: '/etc/two' }));
    expect(warningsOf(desired, 'CREATE', fileOf('x', { path: '/etc/before' }))).toEqual([]);
    expect(warningsOf(desired, 'CREATE', fileOf('x', { path: '/etc/two' }))).toEqual([
      'spec.path: File/two and File/x both put something at /etc/two (a, b, c)',
    ]);
    desired.hear({
      ...fileOf('one'),
      uid: '',
      generation: 2,
      revision: '2',
      finalizers: [],
      retry: '',
      status: undefined,
      deleting: true,
    });
    expect(warningsOf(desired, 'CREATE', fileOf('x', { path: '/etc/one' }))).toEqual([]);
    desired.forget('File/one');
    expect(warningsOf(desired, 'CREATE', fileOf('x', { path: '/etc/before' }))).toHaveLength(1);
    desired.showFragment(committed('one', { path: '/etc/before' }, true));
    expect(warningsOf(desired, 'CREATE', fileOf('x', { path: '/etc/before' }))).toEqual([]);
  });

  it('keeps the purpose of a committed fragment that has no object yet', () => {
    const desired = desiredState(THREE);
    desired.showFragment({
      fragment: {
        kind: 'File',
        name: 'one',
        labels: { 'sluice.dev/purpose': 'a' },
        spec: { nodeSelector: {}, path: '/etc/one', content: '' },
      },
      gone: false,
    } as never);
    expect(answerAdmission(ask('CREATE', fileOf('one')), desired)).toMatchObject({
      is: 'invalid',
      reasons: [{ code: 'immutable', field: 'metadata.labels["sluice.dev/purpose"]' }],
    });
    expect(
      answerAdmission(ask('CREATE', fileOf('one', {}, { labels: { 'sluice.dev/purpose': 'a' } })), desired),
    ).toEqual({
      is: 'allowed',
      warnings: [],
    });
  });

  it('refuses to change, add or remove what an object is for', () => {
    const desired = desiredState(THREE);
    const rule = (selector: object, labels: object = {}) => ({
      ...fileOf('one', { nodeSelector: selector }, { labels }),
      kind: 'CNFRoute',
    });
    const edge = { matchLabels: { sdewanPurpose: 'edge' } };
    const fieldsOf = (before: ReturnType<typeof rule>, now: ReturnType<typeof rule>): unknown => {
      const answer = answerAdmission({ ...ask('UPDATE', now, before), kind: 'CNFRoute' }, desired);
      return answer.is === 'invalid'
        ? answer.reasons.filter(({ code }) => code === 'immutable').map(({ field, message }) => `${field}: ${message}`)
        : answer.is;
    };
    const again = 'delete CNFRoute/one and create it again';
    expect(fieldsOf(rule(edge), rule({ matchLabels: { sdewanPurpose: 'core' } }))).toEqual([
      `spec.nodeSelector: selects nodes with the purpose edge, and cannot change to nodes with the purpose core: ${again}`,
    ]);
    expect(fieldsOf(rule({}), rule(edge))).toEqual([
      `spec.nodeSelector: selects nodes with any purpose, and cannot change to nodes with the purpose edge: ${again}`,
    ]);
    expect(fieldsOf(rule(edge), rule(edge, { sdewanPurpose: 'edge' }))).toEqual([
      `metadata.labels["sdewanPurpose"]: is not set and cannot become "edge": ${again}`,
    ]);
    const zoned = {
      matchLabels: { zone: 'a' },
      matchExpressions: [{ key: 'sdewanPurpose', operator: 'In', values: ['edge'] }],
    };
    expect(fieldsOf(rule(edge), rule(zoned))).toEqual([]);
  });

  it('needs a right for what an object is for, before and after a change', () => {
    const desired = desiredState(THREE);
    const route = (selector: object, labels: object = {}) => ({
      ...fileOf('one', { nodeSelector: selector, dst: 'default', gw: '10.0.0.1' }, { labels }),
      kind: 'CNFRoute',
    });
    const rights = (object?: ReturnType<typeof route>, before?: ReturnType<typeof route>): unknown =>
      rightsNeeded(
        {
          ...ask(object === undefined ? 'DELETE' : before === undefined ? 'CREATE' : 'UPDATE', object, before),
          kind: (object ?? before)?.kind ?? '',
        },
        desired,
      ).map(({ plural, purpose }) => `${plural} ${purpose}`);
    const edge = { matchLabels: { sdewanPurpose: 'edge' } };
    expect(rights(route(edge))).toEqual(['cnfroutes edge']);
    expect(rights(undefined, route(edge))).toEqual(['cnfroutes edge']);
    expect(rights(route(edge, { 'sluice.dev/purpose': 'lab' }))).toEqual(['cnfroutes edge', 'cnfroutes lab']);
    expect(rights(route({}))).toEqual(['cnfroutes ']);
    expect(rights(route(edge), route({}))).toEqual(['cnfroutes edge', 'cnfroutes ']);
    expect(rights(route(edge), route(edge))).toEqual([]);
    const file = fileOf('one');
    expect(rights(file as never)).toEqual([]);
    expect(rights(fileOf('one', { nodeSelector: edge }) as never)).toEqual(['files edge']);
    expect(
      answerAdmission({ ...ask('CREATE', route(edge)), kind: 'CNFRoute' }, desired, {
        lacks: { plural: 'cnfroutes', purpose: 'edge' },
      }),
    ).toEqual({
      is: 'forbidden',
      message:
        '"mary" may not create CNFRoute/one: it is for the purpose "edge", which needs the right to use cnfroutes.sluice.dev/purpose with the resourceName edge',
    });
  });

  it('checks every group of equal nodes, and names the nodes of a group', () => {
    const desired = desiredState(
      THREE,
      fileOf('of-edge', { nodeSelector: { matchLabels: { role: 'edge' } }, path: '/a' }),
    );
    expect(warningsOf(desired, 'CREATE', fileOf('x', { path: '/a' }))).toEqual([
      'spec.path: File/of-edge and File/x both put something at /a (a, b)',
    ]);
    expect(warningsOf(desired, 'CREATE', fileOf('x', { content: '{{ node.labels.zone }}' }))).toEqual([
      'spec.content: {{ node.labels.zone }}: the node has no such label; it has role (a, c)',
    ]);
  });

  it('follows nodes and fragments that join, change and leave', () => {
    const desired = desiredState(THREE);
    expect(warningsOf(desired, 'CREATE', fileOf('x', { nodeSelector: { matchLabels: { role: 'web' } } }))).toEqual([]);
    desired.showNode(node('d', { role: 'web' }, []));
    expect(warningsOf(desired, 'CREATE', fileOf('x', { nodeSelector: { matchLabels: { role: 'web' } } }))).toEqual([
      'kind: the node cannot do this: it did not announce kind:File (d)',
    ]);
    desired.showNode(node('d', { role: 'web' }));
    expect(warningsOf(desired, 'CREATE', fileOf('x', { nodeSelector: { matchLabels: { role: 'web' } } }))).toEqual([]);
    desired.showNode({ ...node('d', { role: 'web' }, []), state: 'gone' });
    expect(warningsOf(desired, 'CREATE', fileOf('x', { nodeSelector: { matchLabels: { role: 'web' } } }))).toEqual([]);
  });

  it('does not mention what is already wrong', () => {
    const desired = desiredState(THREE, fileOf('one'), fileOf('two', { path: '/etc/one' }));
    const two = fileOf('two', { path: '/etc/one' });
    expect(warningsOf(desired, 'UPDATE', { ...two, spec: { ...two.spec, content: 'other' } }, two)).toEqual([]);
  });

  describe('about a known-bad config', () => {
    const knownBad = (desired: DesiredState, kind: 'hash' | 'recipe', ...files: readonly object[]): KnownBadView => {
      const rendered = renderNode(
        compileFragments(files as unknown as readonly Fragment[]).forNode(THREE[0]?.labels ?? {}),
        { name: 'a', labels: {} },
        sha256,
      );
      const story = {
        hash: rendered.hash,
        recipe: rendered.recipe,
        change: 'c3',
        node: 'b',
        lease: '',
        reason: 'its probe fails',
        since: 'yesterday',
        gone: false,
        ledger: 1,
        clearedBy: '',
        clearedReason: '',
        findings: [],
        clearedFindings: [],
      };
      desired.knownBad.show(kind === 'hash' ? `config.${rendered.hash}` : `recipe.${rendered.recipe}`, story);
      return story;
    };
    const bad = fileOf('x', { content: 'bad' });

    it('warns, with its history, until it is cleared', () => {
      const desired = desiredState(THREE, fileOf('one'));
      const story = knownBad(desired, 'hash', fileOf('one'), bad);
      expect(warningsOf(desired, 'CREATE', bad)).toEqual([
        `spec: config ${story.hash.slice(0, 12)} is known-bad: b reported it as invalid in c3 at yesterday: its probe fails; to allow it again: sluice clear ${story.hash.slice(0, 12)} --reason WHY (a, b, c)`,
      ]);
      expect([
        warningsOf(desired, 'CREATE', fileOf('x', { content: 'good' })),
        warningsOf(desired, 'CREATE', fileOf('x', { content: 'bad', path: '/etc/y' })),
      ]).toEqual([[], []]);
      desired.knownBad.show(`config.${story.hash}`, { ...story, gone: true });
      expect(warningsOf(desired, 'CREATE', bad)).toEqual([]);
    });

    it('also warns about the same fragments if each node has its own value in them', () => {
      const desired = desiredState(THREE);
      const named = fileOf('x', { content: '{{ node.name }}' });
      const story = knownBad(desired, 'recipe', named);
      expect(warningsOf(desired, 'CREATE', named).join()).toContain(
        `a config made of the same fragments as ${story.hash.slice(0, 12)} is known-bad`,
      );
    });

    it('also warns about a deletion that leads to one, but not about nodes that already have it', () => {
      const desired = desiredState(THREE, fileOf('one'), bad);
      knownBad(desired, 'hash', fileOf('one'));
      expect(warningsOf(desired, 'DELETE', undefined, bad).join()).toContain('is known-bad');
      knownBad(desired, 'hash', fileOf('one'), bad);
      expect(warningsOf(desired, 'UPDATE', { ...bad, labels: { team: 'a' } }, bad)).toEqual([]);
    });

    it('computes no digests while nothing is known-bad', () => {
      let digested = 0;
      const desired = new DesiredState((text) => {
        digested += 1;
        return sha256(text);
      });
      for (const one of THREE) desired.showNode(one);
      for (const what of ['fragments', 'nodes', 'Pool']) desired.read.add(what);
      expect([warningsOf(desired, 'CREATE', bad), digested]).toEqual([[], 0]);
    });
  });

  it('combines many warnings into a few, each short enough for the API server', () => {
    const files = Array.from({ length: 30 }, (_, i) => fileOf(`f${i}`, { path: `/etc/d/${'x'.repeat(300)}${i}` }));
    const warnings = warningsOf(desiredState(THREE, ...files), 'CREATE', fileOf('d', { path: '/etc/d' }));
    expect([warnings.length, warnings.at(-1), Math.max(...warnings.map((line) => line.length))]).toEqual([
      13,
      'and 18 more',
      256,
    ]);
  });

  it('refuses a user without the right, even if they use a label that no node has', () => {
    const pool = {
      kind: 'Pool',
      name: 'edge',
      spec: { nodeSelector: { matchLabels: { role: 'edge' } }, editors: [{ groups: ['edge-team'] }] },
    };
    const desired = desiredState(THREE, pool);
    expect(
      answerAdmission(
        ask(
          'CREATE',
          fileOf('x', { nodeSelector: { matchExpressions: [{ key: 'role', operator: 'NotIn', values: ['core'] }] } }),
        ),
        desired,
      ),
    ).toMatchObject({ is: 'forbidden' });
    expect(
      answerAdmission(ask('CREATE', fileOf('x', { nodeSelector: { matchLabels: { role: 'core' } } })), desired),
    ).toMatchObject({ is: 'allowed' });
    for (const group of ['edge-team', 'system:masters'])
      expect(answerAdmission(ask('CREATE', fileOf('x'), undefined, [group]), desired)).toMatchObject({ is: 'allowed' });
  });
});

describe('a user who pauses or resumes a rollout', () => {
  const poolOf = (name: string, editors?: readonly object[]) => ({
    kind: 'Pool',
    name,
    spec: { nodeSelector: { matchLabels: { role: name } }, ...(editors === undefined ? {} : { editors }) },
  });
  const change = (more: object = {}): ChangeView =>
    ({
      change: 'c5',
      phase: 'rolling',
      apply: [{ kind: 'File', name: 'a' }],
      delete: [],
      pools: { edge: 2, core: 1 },
      ...more,
    }) as unknown as ChangeView;
  const world = (view: ChangeView | undefined, ...pools: readonly ReturnType<typeof poolOf>[]): DesiredState => {
    const desired = desiredState(THREE, ...pools);
    if (view !== undefined) desired.changes.show(view);
    desired.read.add('changes');
    return desired;
  };
  const wish = (desired: DesiredState, groups: readonly string[], more: Partial<RolloutRequest> = {}): string => {
    const answer = answerSteering(
      {
        uid: 'u',
        operation: 'UPDATE',
        kind: 'Rollout',
        name: 'c5',
        user: 'mary',
        groups,
        paused: true,
        wasPaused: undefined,
        ...more,
      },
      desired,
    );
    return answer.is === 'forbidden' ? answer.message : answer.is;
  };
  const BOTH = [
    poolOf('edge', [{ groups: ['edge-team'] }]),
    poolOf('core', [{ groups: ['core-team', 'sre'] }, { groups: ['edge-team'], kinds: ['Directory'] }]),
  ];

  it('must be an editor of every pool that it touches, for every kind in it', () => {
    const desired = world(change(), ...BOTH);
    expect(wish(desired, ['edge-team'])).toBe(
      '"mary" may not pause Rollout/c5: it affects nodes of Pool/core, where only core-team, sre may change File',
    );
    expect(wish(desired, ['sre'], { paused: false, wasPaused: true })).toBe(
      '"mary" may not resume Rollout/c5: it affects nodes of Pool/edge, where only edge-team may change File',
    );
    expect([wish(desired, ['edge-team', 'sre']), wish(desired, ['system:masters'])]).toEqual(['allowed', 'allowed']);
    expect(wish(world(change({ pools: { edge: 2 } }), ...BOTH), ['edge-team'])).toBe('allowed');
    expect(wish(world(change({ delete: [{ kind: 'Directory', name: 'd' }] }), ...BOTH), ['sre', 'edge-team'])).toBe(
      'allowed',
    );
    expect(wish(world(change({ apply: [], delete: [{ kind: 'Directory', name: 'd' }] }), ...BOTH), ['edge-team'])).toBe(
      'allowed',
    );
  });

  it('needs only Kubernetes roles if no pool has editors, or if nothing is requested', () => {
    expect(wish(world(change({ pools: { default: 3 } }), ...BOTH), [])).toBe('allowed');
    expect(wish(world(change(), poolOf('edge'), poolOf('core')), [])).toBe('allowed');
    for (const more of [
      { paused: undefined, wasPaused: true },
      { paused: true, wasPaused: true },
    ])
      expect(wish(world(change(), ...BOTH), [], more)).toBe('allowed');
  });

  it('must be an editor of all pools while the affected ones are unknown, even if the change is yet to come', () => {
    const unknown =
      '"mary" may not pause Rollout/c5: it is not known yet which pools it affects, and some pools have editors; try again after its review';
    const [waiting, toCome] = [
      world(change({ phase: 'waiting', pools: {} }), ...BOTH),
      world(change({ change: 'c4' }), ...BOTH),
    ];
    expect([wish(waiting, ['edge-team']), wish(waiting, ['other']), wish(toCome, ['other'])]).toEqual([
      unknown,
      unknown,
      unknown,
    ]);
    expect([wish(waiting, ['edge-team', 'sre']), wish(toCome, ['edge-team', 'sre'])]).toEqual(['allowed', 'allowed']);
  });

  it('has no effect on a rollout that has ended', () => {
    expect(wish(world(change({ phase: 'committed' }), ...BOTH), [])).toBe('allowed');
    expect(wish(world(change({ change: 'c6' }), ...BOTH), [])).toBe('allowed');
  });

  it('is refused until everything was read', () => {
    expect(wish(desiredState(THREE, ...BOTH), [])).toBe('unready');
    expect(wish(new DesiredState(), [])).toBe('unready');
  });
});

describe('a review', () => {
  const body = (request: object): object => ({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: 'u1',
      operation: 'CREATE',
      kind: { group: 'sluice.dev', version: 'v1alpha1', kind: 'File' },
      ...request,
    },
  });

  it('is read in the format of the API server', () => {
    const object = {
      metadata: { name: 'motd', labels: { a: 'b' }, finalizers: [] },
      spec: { nodeSelector: {} },
      status: {},
    };
    expect(readReview(body({ name: '', userInfo: { username: 'mary', groups: ['a', 1] }, object }))).toEqual({
      uid: 'u1',
      operation: 'CREATE',
      kind: 'File',
      name: 'motd',
      user: 'mary',
      groups: ['a'],
      object: { kind: 'File', name: 'motd', labels: { a: 'b' }, spec: { nodeSelector: {} }, deleting: false },
      before: undefined,
    });
  });

  it.each([
    ['of a status', { subResource: 'status' }],
    ['of a foreign kind', { kind: { kind: 'Deployment' } }],
    ['of the status of a Rollout', { kind: { kind: 'Rollout' }, subResource: 'status' }],
    ['of the deletion of a Rollout', { kind: { kind: 'Rollout' }, operation: 'DELETE' }],
    ['of a CONNECT request', { operation: 'CONNECT' }],
  ])('%s is ignored', (_, request) => expect(readReview(body(request))).toEqual({ uid: 'u1', operation: 'other' }));

  it('of a Rollout contains the requested pause', () => {
    const request = {
      kind: { kind: 'Rollout' },
      userInfo: { username: 'mary', groups: ['a'] },
      object: { metadata: { name: 'c5' }, spec: { paused: true } },
    };
    expect(readReview(body(request))).toEqual({
      uid: 'u1',
      operation: 'CREATE',
      kind: 'Rollout',
      name: 'c5',
      user: 'mary',
      groups: ['a'],
      paused: true,
      wasPaused: undefined,
    });
    expect(
      readReview(
        body({
          ...request,
          operation: 'UPDATE',
          object: { metadata: { name: 'c5' } },
          oldObject: { spec: { paused: false } },
        }),
      ),
    ).toMatchObject({ paused: undefined, wasPaused: false });
  });

  it.each([
    [undefined],
    [null],
    [[]],
    ['text'],
    [{}],
    [{ kind: 'AdmissionReview' }],
    [{ kind: 'AdmissionReview', request: { uid: 1 } }],
    [{ kind: 'Pod', request: { uid: 'u' } }],
  ])('%j is not a review', (value) => {
    expect(readReview(value)).toBeUndefined();
  });

  it('accepts objects without common fields', () => {
    for (const object of [undefined, null, 'text']) expect(readReview(body({ object }))).toBeUndefined();
    for (const object of [{}, { metadata: null }, { metadata: { labels: [] }, spec: 'text' }]) {
      const request = readReview(body({ object }));
      expect(
        request === undefined || request.operation === 'other' || 'paused' in request
          ? undefined
          : answerAdmission(request, desiredState(THREE)).is,
      ).toBe('invalid');
    }
  });

  it('is answered with its uid', () => {
    expect(reviewOf({ uid: 'u1' }, { is: 'allowed', warnings: [] })).toEqual({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      response: { uid: 'u1', allowed: true },
    });
    expect(reviewOf({ uid: 'u1' }, { is: 'unready' })).toBeUndefined();
    expect(reviewOf({ uid: 'u1' }, { is: 'forbidden', message: 'no' })).toMatchObject({
      response: { allowed: false, status: { code: 403, reason: 'Forbidden', message: 'no' } },
    });
  });
});

it.each([
  [15, 'good', ''],
  [13.5, 'ending', 'in 13 days'],
  [1.5, 'ending', 'in 1 day,'],
  [0.5, 'ending', 'within a day'],
  [-1, 'expired', 'expired on then'],
  [500, 'not-yet', 'is not valid before before'],
])('a certificate that ends in %s days is %s', (days, is, text) => {
  const day = 24 * 3_600_000;
  const certificateStatus = certificateStatusOf(
    { beginsMs: 0, endsMs: 400 * day, begins: 'before', ends: 'then' },
    (400 - days) * day,
  );
  expect([certificateStatus.is, certificateStatus.words]).toEqual([
    is,
    text === '' ? '' : expect.stringContaining(text),
  ]);
});

it('an expired certificate is shown by the Pools, even if nothing else has changed', () => {
  const state = new State(sha256);
  const pool = {
    kind: 'Pool',
    name: 'edge',
    uid: 'u',
    generation: 1,
    revision: '1',
    labels: {},
    spec: { nodeSelector: {} },
    deleting: false,
    finalizers: [FINALIZER],
    retry: '',
    status: undefined as Status | undefined,
  };
  state.hear(pool, 0);
  state.show({
    change: 'c1',
    phase: 'committed',
    ledger: 1,
    source: 'kubernetes',
    apply: [{ kind: 'Pool', name: 'edge' }],
    delete: [],
    reasons: [],
    nodes: 0,
  } as unknown as ChangeView);
  state.index.read(
    'c1',
    contentsOf(JSON.stringify({ kind: 'Pool', metadata: { name: 'edge' }, spec: pool.spec }), sha256),
  );
  /** What a Pool says about the webhook, if anything is written. */
  const conditionAt = (nowMs: number): Condition | 'nothing' | undefined => {
    const [action] = decide(state, { nowMs, at: 'now', debounceMs: 1 }).actions;
    if (action?.do !== 'show') return 'nothing';
    state.hear({ ...pool, revision: String(nowMs), status: action.status }, nowMs);
    return action.status.conditions?.find(({ type }) => type === 'Admission');
  };
  expect([conditionAt(10), conditionAt(20)]).toEqual([undefined, 'nothing']);
  state.admission = { is: 'good', words: '', todo: '' };
  expect([conditionAt(30), conditionAt(40)]).toEqual([
    expect.objectContaining({ status: 'True', reason: 'Answering', message: '' }),
    'nothing',
  ]);
  state.admission = { is: 'expired', words: 'it ran out', todo: 'see to it' };
  expect([conditionAt(50), conditionAt(60)]).toEqual([
    expect.objectContaining({ status: 'False', reason: 'CertificateExpired', message: 'it ran out: see to it' }),
    'nothing',
  ]);
});
