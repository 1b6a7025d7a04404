import { API_GROUP, KINDS, pluralOf, ROLLOUT_KIND } from '#libs/manifests';
import type { Right } from './request-rights.js';

/** In the form of a ClusterRole. */
interface Rule {
  readonly group: string;
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  /** Without it, the rule is for the whole cluster. */
  readonly namespace?: string;
}

const published = KINDS.map(({ name }) => pluralOf(name));
const rollouts = pluralOf(ROLLOUT_KIND);

const RULES = {
  drain: [
    { group: '', resources: ['nodes'], verbs: ['get', 'list', 'watch', 'patch'] },
    { group: '', resources: ['pods'], verbs: ['list', 'watch', 'delete'] },
    { group: '', resources: ['pods/eviction'], verbs: ['create'] },
    { group: 'policy', resources: ['poddisruptionbudgets'], verbs: ['list', 'watch'] },
  ],
  inventory: [{ group: '', resources: ['nodes'], verbs: ['list', 'watch'] }],
  gateway: [
    { group: API_GROUP, resources: published, verbs: ['list', 'watch', 'patch'] },
    { group: API_GROUP, resources: [rollouts], verbs: ['list', 'watch', 'create', 'delete'] },
    { group: API_GROUP, resources: [...published, rollouts].map((plural) => `${plural}/status`), verbs: ['patch'] },
    // Events about cluster-scoped objects are written there.
    { group: '', resources: ['events'], verbs: ['create'], namespace: 'default' },
  ],
} as const satisfies Readonly<Record<string, readonly Rule[]>>;

/** The services that use the API server. */
export type KubeService = keyof typeof RULES;
export const KUBE_SERVICES = Object.keys(RULES) as readonly KubeService[];

/** The rights that a service needs. The chart grants them to its service account. */
export const rightsOf = (service: KubeService): readonly Right[] =>
  (RULES[service] as readonly Rule[]).flatMap(({ group, resources, verbs, namespace = '' }) =>
    verbs.flatMap((verb) => resources.map((resource) => ({ verb, group, resource, namespace }))),
  );
