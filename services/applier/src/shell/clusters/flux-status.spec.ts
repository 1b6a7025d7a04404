import { fluxStatus, lastAttempt } from './flux-status.js';

type Fields = Readonly<Record<string, unknown>>;

const GOOD = `sha1:${'a'.repeat(40)}`;
const LAST = `main@sha1:${'b'.repeat(40)}`;
const WANTED = `main@${GOOD}`;

const condition = (type: string, status: string, reason = '', message = '', observedGeneration = 2): Fields => ({
  type,
  status,
  reason,
  message,
  observedGeneration,
});
const ready = (status: string, reason = '', message = '', generation = 2): Fields =>
  condition('Ready', status, reason, message, generation);

const object = (kind: string, status: Fields, spec: Fields = {}, metadata: Fields = {}): Fields => ({
  kind,
  metadata: { name: 'a', generation: 2, ...metadata },
  spec,
  status,
});
const source = (revision: string, ...conditions: readonly Fields[]): Fields =>
  object('GitRepository', { observedGeneration: 2, artifact: { revision }, conditions });
/** A failure leaves the generation of the status as it was. */
const failedSource = (reason: string, message: string, observedGeneration = 1): Fields =>
  object('GitRepository', {
    observedGeneration,
    artifact: { revision: LAST },
    conditions: [condition('Reconciling', 'True', 'ProgressingWithRetry'), ready('False', reason, message)],
  });
const sync = (attempted: string, applied: string, ...conditions: readonly Fields[]): Fields =>
  object('Kustomization', {
    observedGeneration: 2,
    lastAttemptedRevision: attempted,
    lastAppliedRevision: applied,
    conditions,
  });

const CASES: readonly (readonly [string, Fields | undefined, string])[] = [
  ['an object that is missing', undefined, 'in-progress: is missing'],
  [
    'an object that is being deleted',
    object('Kustomization', {}, {}, { deletionTimestamp: 'x' }),
    'terminating: is being deleted',
  ],
  [
    'an object that somebody has suspended',
    object('Kustomization', { observedGeneration: 2, conditions: [ready('True')] }, { suspend: true }),
    'in-progress: is suspended: somebody has set spec.suspend. Resume it with flux resume',
  ],
  ['an object that Flux has not seen', object('Bucket', {}), 'in-progress: Flux has not handled generation 2 yet'],
  [
    'an object whose status is about an earlier generation',
    object('GitRepository', {
      observedGeneration: 1,
      artifact: { revision: WANTED },
      conditions: [ready('True', '', '', 1)],
    }),
    'in-progress: Flux has not handled generation 2 yet',
  ],
  [
    'an object whose conditions name no generation',
    object('GitRepository', {
      observedGeneration: 1,
      artifact: { revision: WANTED },
      conditions: [{ type: 'Ready', status: 'True' }],
    }),
    'in-progress: Flux has not handled generation 2 yet',
  ],
  [
    'a source that Flux cannot handle',
    object('GitRepository', { conditions: [condition('Stalled', 'True', 'URLInvalid', 'bad URL')] }),
    'failed content: URLInvalid: bad URL',
  ],
  [
    'a source that was stalled in an earlier generation',
    object('GitRepository', { conditions: [condition('Stalled', 'True', 'URLInvalid', 'bad URL', 1)] }),
    'in-progress: Flux has not handled generation 2 yet',
  ],
  ['a source with the wanted commit', source(WANTED, ready('True')), 'current'],
  ['a source with the wanted commit, without a branch', source(GOOD, ready('True')), 'current'],
  ['a source with other content', source(LAST, ready('True')), `in-progress: its content is ${LAST}, and not ${GOOD}`],
  [
    'a source that is being fetched',
    source(WANTED, ready('Unknown', 'Progressing', 'building artifact')),
    'in-progress: Ready=Unknown: Progressing: building artifact',
  ],
  [
    'a source whose server does not answer',
    failedSource('GitOperationFailed', "unable to clone 'https://a.b/c': dial tcp: timeout"),
    "in-progress: Ready=False: GitOperationFailed: unable to clone 'https://a.b/c': dial tcp: timeout",
  ],
  [
    'a commit that does not exist',
    failedSource('GitOperationFailed', "unable to clone 'https://a.b/c': object not found"),
    "failed content: GitOperationFailed: unable to clone 'https://a.b/c': object not found",
  ],
  [
    'a branch that does not exist',
    failedSource('GitOperationFailed', "couldn't find remote ref refs/heads/x"),
    "failed content: GitOperationFailed: couldn't find remote ref refs/heads/x",
  ],
  [
    'an artifact that does not exist',
    failedSource('OCIArtifactPullFailed', 'GET https://r/v2: MANIFEST_UNKNOWN: manifest unknown'),
    'failed content: OCIArtifactPullFailed: GET https://r/v2: MANIFEST_UNKNOWN: manifest unknown',
  ],
  [
    'a bucket that does not exist',
    failedSource('BucketOperationFailed', "bucket 'releases' not found"),
    "failed content: BucketOperationFailed: bucket 'releases' not found",
  ],
  [
    'a Secret for a bucket that does not exist',
    failedSource('AuthenticationFailed', 'failed to get secret \'default/bucket\': secrets "bucket" not found'),
    'in-progress: Ready=False: AuthenticationFailed: failed to get secret \'default/bucket\': secrets "bucket" not found',
  ],
  ['a Kustomization that has applied the wanted revision', sync(WANTED, WANTED, ready('True')), 'current'],
  [
    'a Kustomization that is ready with the last revision',
    sync(LAST, LAST, ready('True')),
    `in-progress: has applied ${LAST} so far`,
  ],
  [
    'a Kustomization whose wanted revision was applied by an earlier generation',
    object('Kustomization', { observedGeneration: 1, lastAppliedRevision: WANTED, conditions: [ready('True')] }),
    `in-progress: has applied ${WANTED} so far`,
  ],
  [
    'a Kustomization that is being applied',
    sync(WANTED, LAST, ready('Unknown', 'Progressing', 'Reconciliation in progress')),
    'in-progress: Ready=Unknown: Progressing: Reconciliation in progress',
  ],
  [
    'a manifest that cannot be built',
    sync(WANTED, LAST, ready('False', 'BuildFailed', 'kustomize build failed')),
    'failed content: BuildFailed: kustomize build failed',
  ],
  [
    'a manifest that the cluster refuses',
    sync(WANTED, LAST, ready('False', 'ReconciliationFailed', 'namespace not found')),
    'failed content: ReconciliationFailed: namespace not found',
  ],
  [
    'an API server that does not answer Flux',
    sync(WANTED, LAST, ready('False', 'ReconciliationFailed', 'Get "https://10.0.0.1": dial tcp: connection refused')),
    'in-progress: Ready=False: ReconciliationFailed: Get "https://10.0.0.1": dial tcp: connection refused',
  ],
  [
    'a right that Flux lacks',
    sync(WANTED, LAST, ready('False', 'ReconciliationFailed', 'User "x" cannot patch resource "configmaps"')),
    'failed node: ReconciliationFailed: User "x" cannot patch resource "configmaps"',
  ],
  [
    'a kubeconfig that Flux cannot use',
    sync(
      WANTED,
      LAST,
      ready('False', 'ReconciliationFailed', "KubeConfig secret 'a/b' does not contain a 'value' key"),
    ),
    "failed node: ReconciliationFailed: KubeConfig secret 'a/b' does not contain a 'value' key",
  ],
  [
    'health that could not be looked at in time',
    sync(WANTED, LAST, ready('False', 'HealthCheckFailed', 'context deadline exceeded')),
    'failed node: HealthCheckFailed: context deadline exceeded',
  ],
  [
    'what does not become healthy',
    sync(WANTED, LAST, ready('False', 'HealthCheckFailed', 'timeout waiting for: [Deployment/a/b]')),
    'failed node: HealthCheckFailed: timeout waiting for: [Deployment/a/b]',
  ],
  [
    'a failure of the last revision',
    sync(LAST, LAST, ready('False', 'ReconciliationFailed', 'no')),
    'in-progress: Ready=False: ReconciliationFailed: no',
  ],
  [
    'a failure of an earlier generation',
    sync(WANTED, LAST, ready('False', 'ReconciliationFailed', 'no', 1)),
    'in-progress: Flux has not handled generation 2 yet',
  ],
  [
    'a dependency that is not ready',
    sync(WANTED, LAST, ready('False', 'DependencyNotReady', 'wait for it')),
    'in-progress: Ready=False: DependencyNotReady: wait for it',
  ],
  [
    'a source that has no artifact yet',
    sync('', '', ready('False', 'ArtifactFailed', 'Source artifact not found')),
    'in-progress: Ready=False: ArtifactFailed: Source artifact not found',
  ],
  [
    'a status of any form',
    object('Kustomization', { conditions: ['x', null, { type: 'Ready', status: 1, observedGeneration: 2 }] }),
    'in-progress: Ready=1: no reason given',
  ],
];

test.each(CASES)('%s', (_name, found, expected) => {
  const { is, fault, message } = fluxStatus(found, GOOD);
  expect(`${is}${fault === undefined ? '' : ` ${fault}`}${message === '' ? '' : `: ${message}`}`).toBe(expected);
});

test('a failure that was there before the change counts only once Flux has tried again', () => {
  const failed = (at: string): Fields =>
    sync(WANTED, LAST, { ...ready('False', 'BuildFailed', 'no'), lastTransitionTime: at });
  const before = lastAttempt(failed('10:00'));
  expect(fluxStatus(failed('10:00'), GOOD, before)).toEqual({
    is: 'in-progress',
    message: 'Flux has not tried this revision again: Ready=False: BuildFailed: no',
  });
  expect(fluxStatus(failed('10:01'), GOOD, before)).toMatchObject({ is: 'failed', fault: 'content' });
  expect(fluxStatus(failed('10:00'), GOOD, lastAttempt(undefined))).toMatchObject({ is: 'failed' });
});

test('long words of Flux are shortened', () => {
  const { message } = fluxStatus(sync(WANTED, LAST, ready('False', 'BuildFailed', 'x'.repeat(100_000))), GOOD);
  expect(message).toHaveLength(1_000);
});
