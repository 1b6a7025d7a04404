import { resolve } from 'node:path';
import { describeOnKube, establish } from '#libs/testing';
import { GOOD_OBJECTS } from '../kinds/functions/function-kinds.fixture.js';
import { KINDS } from '../kinds/registry.js';
import { BAD, GOOD } from '../manifest.fixture.js';
import type { Manifest } from '../manifest.js';
import { BAD_NETWORKS, GOOD_NETWORKS } from '../network-kinds.fixture.js';
import { pluralOf } from './definitions.js';

const FOLDER = resolve(__dirname, '../../../../deploy/crds');

/**
 * What an API server accepts although the validators do not, because a schema cannot express it. The gateway's status
 * reports these.
 */
const BEYOND_A_SCHEMA: ReadonlySet<string> = new Set([
  'a pattern that does not compile', // there is no function that compiles one
  'another word for silent nodes', // a structural schema cannot say "text or object"
]);
/** Not a custom resource at all, so that it never reaches the definition. Something else refuses it. */
const NO_RESOURCE: ReadonlySet<string> = new Set([
  'no version',
  'another version',
  'no metadata',
  'no name',
  'a name that is a number',
]);
/** Fields that Kubernetes itself defines. */
const TAKEN: ReadonlySet<string> = new Set(['an annotation', 'an unknown field']);

describeOnKube('the definitions of custom resources', (world) => {
  beforeAll(async () => void (await establish(world.scene.api, FOLDER)));

  /** Like `kubectl apply --server-side --dry-run=server`. */
  const dryRun = (manifest: Manifest): Promise<{ readonly code: number; readonly body: unknown }> => {
    const { name } = manifest.metadata as { readonly name: string };
    const path = `/apis/sluice.dev/v1alpha1/${pluralOf(manifest.kind as string)}/${encodeURIComponent(name)}`;
    return world.scene.api.call(
      'PATCH',
      `${path}?fieldManager=spec&fieldValidation=Strict&dryRun=All`,
      manifest,
      'application/apply-patch+yaml',
    );
  };

  it('are all established, cluster-wide and in one category', async () => {
    const { body } = await world.scene.api.call('GET', '/apis/sluice.dev/v1alpha1');
    const { resources } = body as {
      readonly resources: readonly {
        readonly name: string;
        readonly kind: string;
        readonly namespaced: boolean;
        readonly categories?: readonly string[];
      }[];
    };
    const whole = resources.filter(({ name }) => !name.includes('/'));
    expect(whole.map(({ kind }) => kind).sort()).toEqual([...KINDS.map(({ name }) => name), 'Rollout'].sort());
    expect(whole.filter(({ namespaced, categories }) => namespaced || categories?.join() !== 'sluice')).toEqual([]);
    expect(resources.filter(({ name }) => name.endsWith('/status')).length).toBe(whole.length);
  });

  it.each([...GOOD, ...GOOD_NETWORKS, ...GOOD_OBJECTS])('accept %s', async (_what, manifest) => {
    const { code, body } = await dryRun(manifest);
    expect({ code, message: (body as { readonly message?: string }).message }).toEqual({
      code: 201,
      message: undefined,
    });
  });

  it.each([...BAD, ...BAD_NETWORKS].filter(([what]) => !NO_RESOURCE.has(what) && !TAKEN.has(what)))(
    'refuse %s',
    async (what, manifest, field) => {
      const { code, body } = await dryRun(manifest);
      if (BEYOND_A_SCHEMA.has(what)) return expect(code).toBe(201);
      expect([400, 422, 500]).toContain(code);
      // It names the place, or at least the unknown field.
      expect((body as { readonly message: string }).message).toContain(
        field.replace(/^.*[.]/, '').replace(/\[\d+\]$/, ''),
      );
    },
  );

  it('have a message for rules over several fields', async () => {
    const messageOf = async (what: string): Promise<string> =>
      ((await dryRun(BAD.find(([name]) => name === what)?.[1] as Manifest)).body as { readonly message: string })
        .message;
    expect(await messageOf('a probe with two checks')).toContain(
      'exactly one of tcp, http, exec, file, function, kube is needed',
    );
    expect(await messageOf('In without values')).toContain('In and NotIn need at least one value');
    expect(await messageOf('a reload without a unit')).toContain('reload and restart need a unit');
    expect(await messageOf('a pool named default')).toContain('a Pool cannot be named default');
  });
});
