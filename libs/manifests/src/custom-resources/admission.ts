import { KINDS } from '../kinds/registry.js';
import { API_GROUP, API_GROUP_VERSION, pluralOf, ROLLOUT_KIND } from './definitions.js';

/** The name of the webhook and of its configuration. */
export const WEBHOOK_NAME = 'admission.sluice.dev';
/** The path of the webhook. */
export const WEBHOOK_PATH = '/admit';

/**
 * The requests that the API server sends to the gateway. `status` is excluded, because only the gateway writes it. In a
 * Rollout, only the pause is a user's request.
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
 * Requests that change no content are excluded too: finalizers, annotations and owners need no permission, so that an
 * object can always be released.
 */
export const WEBHOOK_CONDITIONS = [
  {
    name: 'changes-content',
    expression:
      "request.operation != 'UPDATE' || object.?spec.orValue({}) != oldObject.?spec.orValue({}) || object.metadata.?labels.orValue({}) != oldObject.metadata.?labels.orValue({})",
  },
  {
    // The gateway creates Rollouts itself, and no review is possible while it is away.
    name: 'wishes-of-rollouts',
    expression:
      "request.resource.resource != 'rollouts' || (request.operation == 'CREATE' ? object.?spec.?paused.hasValue() : object.?spec.?paused != oldObject.?spec.?paused)",
  },
] as const;

/** A slower answer counts as no answer: the person who applies waits for it. */
export const WEBHOOK_TIMEOUT_SECONDS = 3;

/** Where the API server reaches the gateway: a Service, or an address if the gateway runs outside the cluster. */
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

/** `Ignore`: without an answer, every request is accepted, and the status shows errors later. `Fail`: none is. */
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
 * The form in deploy/admission. Insert the certificate of the authority before you apply it, or let cert-manager do so.
 */
export const PLAIN_WEBHOOK = webhookConfiguration({
  service: { name: 'sluice-gateway', namespace: 'sluice', path: WEBHOOK_PATH, port: 443 },
});
