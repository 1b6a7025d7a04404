import { KINDS } from '../kinds/registry.js';
import { API_GROUP, API_GROUP_VERSION, pluralOf, ROLLOUT_KIND } from './definitions.js';

/** The name of the webhook and of its configuration. */
export const WEBHOOK_NAME = 'admission.sluice.dev';
/** Where the gateway answers. */
export const WEBHOOK_PATH = '/admit';

/**
 * Which requests the API server asks the gateway about: not about `status`, which is the gateway's own. Of a Rollout
 * only whether it is paused is somebody's wish.
 */
export const WEBHOOK_RULES = [
  {
    apiGroups: [API_GROUP],
    apiVersions: [API_GROUP_VERSION],
    operations: ['CREATE', 'UPDATE', 'DELETE'],
    resources: KINDS.map(({ name }) => pluralOf(name)),
    scope: 'Cluster',
  },
  {
    apiGroups: [API_GROUP],
    apiVersions: [API_GROUP_VERSION],
    operations: ['CREATE', 'UPDATE'],
    resources: [pluralOf(ROLLOUT_KIND)],
    scope: 'Cluster',
  },
] as const;

/**
 * Nor about what changes no content: finalizers, annotations and owners need nobody's leave, so that an object can
 * always be let go.
 */
export const WEBHOOK_CONDITIONS = [
  {
    name: 'changes-content',
    expression:
      "request.operation != 'UPDATE' || object.?spec.orValue({}) != oldObject.?spec.orValue({}) || object.metadata.?labels.orValue({}) != oldObject.metadata.?labels.orValue({})",
  },
  {
    // The gateway makes them without a wish, and nobody can be asked while it is away.
    name: 'wishes-of-rollouts',
    expression:
      "request.resource.resource != 'rollouts' || (request.operation == 'CREATE' ? object.?spec.?paused.hasValue() : object.?spec.?paused != oldObject.?spec.?paused)",
  },
] as const;

/** An API server waits no longer for an answer; what is slower is as if nobody answered. */
export const WEBHOOK_TIMEOUT_SECONDS = 3;

/** Where the API server finds the gateway: a Service, or, where it runs outside of the cluster, an address. */
export type WebhookClient =
  | {
      readonly service: {
        readonly name: string;
        readonly namespace: string;
        readonly path: string;
        readonly port: number;
      };
      readonly caBundle?: string;
    }
  | { readonly url: string; readonly caBundle?: string };

/**
 * `Ignore`: while nobody answers, everything is let through, and its status says later what is wrong. `Fail`: nothing
 * is.
 */
export type FailurePolicy = 'Ignore' | 'Fail';

/** The ValidatingWebhookConfiguration of the gateway. */
export const webhookConfiguration = (clientConfig: WebhookClient, failurePolicy: FailurePolicy = 'Ignore') => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  metadata: { name: WEBHOOK_NAME },
  webhooks: [
    {
      name: WEBHOOK_NAME,
      clientConfig,
      rules: WEBHOOK_RULES,
      matchConditions: WEBHOOK_CONDITIONS,
      failurePolicy,
      // A request in another version is converted first.
      matchPolicy: 'Equivalent',
      sideEffects: 'None',
      timeoutSeconds: WEBHOOK_TIMEOUT_SECONDS,
      admissionReviewVersions: ['v1'],
    },
  ],
});

/**
 * As it lies in deploy/admission: put the certificate of the authority in before you apply it, or has cert-manager do
 * so.
 */
export const PLAIN_WEBHOOK = webhookConfiguration({
  service: { name: 'sluice-gateway', namespace: 'sluice', path: WEBHOOK_PATH, port: 443 },
});
