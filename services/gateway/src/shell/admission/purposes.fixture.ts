import type { KubeWorld } from '#libs/testing';

interface WrittenObject {
  readonly kind: string;
  readonly name: string;
  readonly labels?: object;
  readonly spec: object;
}

interface ReviewAnswer {
  readonly code: number;
  readonly warnings: readonly string[];
  readonly message: string;
}

/** How objects are written, through the webhook. */
interface Writing {
  readonly apply: (one: WrittenObject, ...as: readonly string[]) => Promise<ReviewAnswer>;
  readonly dryRun: (one: WrittenObject, ...as: readonly string[]) => Promise<ReviewAnswer>;
  readonly remove: (kind: string, name: string, ...as: readonly string[]) => Promise<ReviewAnswer>;
  readonly untilAnswer: (
    what: string,
    holds: (answer: ReviewAnswer) => boolean,
    ask: () => Promise<ReviewAnswer>,
  ) => Promise<unknown>;
}

const RBAC = '/apis/rbac.authorization.k8s.io/v1';

const file = (name: string, spec: object, labels: object = {}): WrittenObject => ({
  kind: 'File',
  name,
  labels,
  spec: { nodeSelector: {}, path: `/etc/${name}`, content: '', ...spec },
});

/** What the webhook says about the purposes of objects. */
export function describePurposes(world: KubeWorld, { apply, dryRun, remove, untilAnswer }: Writing): void {
  it('does not allow changing a purpose', async () => {
    await apply(file('unpurposed', {}));
    expect(await apply(file('unpurposed', {}, { 'sluice.dev/purpose': 'edge' }))).toMatchObject({
      code: 422,
      message: expect.stringMatching(/is not set and cannot become "edge": delete File\/unpurposed/) as string,
    });
    expect((await apply(file('purposed', {}, { 'sluice.dev/purpose': 'edge' }))).code).toBe(201);
    for (const labels of [{ 'sluice.dev/purpose': 'core' }, { 'sluice.dev/purpose': '' }]) {
      expect(await apply(file('purposed', {}, labels))).toMatchObject({
        code: 422,
        message: expect.stringMatching(
          /metadata\.labels\["sluice\.dev\/purpose"\]: is "edge" and cannot change to/,
        ) as string,
      });
    }
    expect(await apply(file('purposed', {}, { team: 'a' }))).toMatchObject({
      code: 422,
      message: expect.stringMatching(/cannot be removed: delete File\/purposed/) as string,
    });
    expect((await apply(file('purposed', { content: 'new' }, { 'sluice.dev/purpose': 'edge' }))).code).toBe(200);
  });

  describe('for a purpose', () => {
    const nat = (name: string, purpose: string | undefined, more: object = {}): WrittenObject => ({
      kind: 'NetworkFirewallRule',
      name,
      spec: {
        nodeSelector: purpose === undefined ? {} : { matchLabels: { sdewanPurpose: purpose } },
        src: 'eth0',
        target: 'DROP',
        ...more,
      },
    });
    const [zoe, all] = [['zoe', 'edge-ops'] as const, ['max', 'all-ops'] as const];
    beforeAll(async () => {
      const role = async (name: string, group: string, rule: object): Promise<void> => {
        const metadata = { name };
        await world.scene.api.create(`${RBAC}/clusterroles`, {
          metadata,
          rules: [{ apiGroups: ['sluice.dev'], verbs: ['use'], ...rule }],
        });
        await world.scene.api.create(`${RBAC}/clusterrolebindings`, {
          metadata,
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
          subjects: [{ kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name: group }],
        });
      };
      await role('edge-rules', 'edge-ops', {
        resources: ['networkfirewallrules/purpose'],
        resourceNames: ['edge'],
      });
      await role('all-rules', 'all-ops', { resources: ['*/purpose'] });
    });

    it('needs the right to use it, which roles of the API server grant per kind and purpose', async () => {
      const refused = (why: RegExp) => ({ code: 403, message: expect.stringMatching(why) as string });
      const noRight = /"zoe" may not create NetworkFirewallRule\/one: .* with the resourceName core/;
      await untilAnswer(
        'the role is in effect',
        ({ code }) => code < 300,
        () => dryRun(nat('one', 'edge'), ...zoe),
      );
      expect(await dryRun(nat('one', 'core'), ...zoe)).toMatchObject(refused(noRight));
      expect(await dryRun(nat('one', undefined), ...zoe)).toMatchObject(refused(/without resourceNames/));
      expect(await dryRun({ ...nat('two', 'edge'), kind: 'FirewallRule' }, ...zoe)).toMatchObject(
        refused(/use firewallrules\.sluice\.dev\/purpose/),
      );
      expect(
        await dryRun(file('three', { nodeSelector: { matchLabels: { sdewanPurpose: 'edge' } } }), ...zoe),
      ).toMatchObject(refused(/use files\.sluice\.dev\/purpose/));
      for (const one of [nat('one', 'core'), nat('one', undefined)])
        expect((await dryRun(one, ...all)).code).toBeLessThan(300);
    });

    it('cannot be changed, and protects what exists', async () => {
      expect((await apply(nat('kept', 'core'), ...all)).code).toBeLessThan(300);
      expect(await apply(nat('kept', 'core', { target: 'ACCEPT' }), ...zoe)).toMatchObject({ code: 403 });
      expect(await remove('NetworkFirewallRule', 'kept', ...zoe)).toMatchObject({ code: 403 });
      expect(await apply(nat('kept', 'edge'), ...all)).toMatchObject({
        code: 422,
        message: expect.stringMatching(/selects nodes with the purpose core, and cannot change/) as string,
      });
      expect((await remove('NetworkFirewallRule', 'kept', ...all)).code).toBeLessThan(300);
    });
  });
}
