import { isFluxRevision } from '#libs/manifests/lean';
import { conditionsOf, fieldsOf, textOf, wordsOf, type Condition, type ObjectStatus } from './kstatus.js';

type Fields = Readonly<Record<string, unknown>>;

/**
 * Whether Flux has done exactly what a source or a Kustomization of a `FluxSync` asks for. kstatus does not tell: the
 * spec of a Kustomization does not change with the revision of its source, so `Ready=True` may be about the last one.
 *
 * 1. A source is current if Flux has fetched the revision that it pins, for its latest generation.
 * 2. A Kustomization is current if `Ready=True` and the applied revision is the pinned one, for its latest generation.
 * 3. It has failed if `Ready=False` and the attempted revision is the pinned one. Whatever Flux says about another
 *    revision or an earlier generation is not about this change.
 * 4. What may pass by itself is waited for: dependencies, downloads, servers that do not answer.
 * 5. A failure that was there before the change says nothing about it: Flux may not have tried the revision again.
 *    `before` is the last attempt at that time.
 */
export function fluxStatus(object: Fields | undefined, revision: string, before?: string): ObjectStatus {
  if (object === undefined) return waits('is missing');
  const metadata = fieldsOf(object['metadata']);
  if (metadata['deletionTimestamp'] !== undefined) return { is: 'terminating', message: 'is being deleted' };
  if (fieldsOf(object['spec'])['suspend'] === true)
    return waits('is suspended: somebody has set spec.suspend. Resume it with flux resume');
  const status = fieldsOf(object['status']);
  const { generation } = metadata;
  // A condition that has failed is about its own generation: that of the status stays the last one that was ready.
  const isLatest = (condition: Condition): boolean =>
    (condition.observedGeneration ?? status['observedGeneration']) === generation;
  const [ready, stalled] = ['Ready', 'Stalled'].map((wanted) =>
    conditionsOf(status).find((condition) => condition.type === wanted && isLatest(condition)),
  );
  if (stalled?.status === 'True') return fails(stalled, 'content');
  if (ready === undefined) return waits(`Flux has not handled generation ${String(generation)} yet`);
  const judge = object['kind'] === 'Kustomization' ? kustomization : source;
  const isNew = before === undefined || lastAttempt(object) !== before;
  return judge({ status, ready, revision, isNew, isHandled: status['observedGeneration'] === generation });
}

interface Judged {
  readonly status: Fields;
  /** The condition Ready of the latest generation. */
  readonly ready: Condition;
  readonly revision: string;
  /** Whether Flux has tried something since the change was checked. */
  readonly isNew: boolean;
  /** Whether Flux was ready with the latest generation. */
  readonly isHandled: boolean;
}

function source({ status, ready, revision, isHandled }: Judged): ObjectStatus {
  const fetched = fieldsOf(status['artifact'])['revision'];
  if (ready.status === 'True' && isHandled)
    return isFluxRevision(fetched, revision)
      ? CURRENT
      : waits(`its content is ${textOf(fetched) || 'not known'}, and not ${revision}`);
  if (ready.status === 'False' && IS_ABSENT.test(textOf(ready.message))) return fails(ready, 'content');
  return waits(shown(ready));
}

function kustomization({ status, ready, revision, isNew, isHandled }: Judged): ObjectStatus {
  const { lastAppliedRevision: applied, lastAttemptedRevision: attempted } = status;
  if (ready.status === 'True' && isHandled && isFluxRevision(applied, revision)) return CURRENT;
  if (ready.status === 'False' && isFluxRevision(attempted, revision)) {
    if (!isNew) return waits(`Flux has not tried this revision again: ${shown(ready)}`);
    const fault = faultOf(textOf(ready.reason), textOf(ready.message));
    if (fault !== undefined) return fails(ready, fault);
  }
  return waits(ready.status === 'True' ? `has applied ${textOf(applied) || 'nothing'} so far` : shown(ready));
}

/**
 * Identifies the last attempt of Flux to bring about what an object asks for. Each attempt of a Kustomization first
 * sets `Ready=Unknown`, so that the time of a failure is that of its attempt, also if it fails again.
 */
export function lastAttempt(object: Fields | undefined): string {
  const status = fieldsOf(object?.['status']);
  const ready = conditionsOf(status).find(({ type }) => type === 'Ready') as Fields | undefined;
  return JSON.stringify([status['lastAttemptedRevision'], ready?.['status'], ready?.['lastTransitionTime']]);
}

function faultOf(reason: string, message: string): ObjectStatus['fault'] | undefined {
  const fault = FAILURES[reason];
  if (fault === undefined || reason === 'HealthCheckFailed') return fault;
  if (MAY_PASS.test(message)) return undefined;
  return IS_OF_ACCESS.test(message) ? 'node' : fault;
}

/** An API server does not answer, or is in trouble: Flux tries again. */
const MAY_PASS =
  /dial tcp|connection (refused|reset)|no such host|i\/o timeout|TLS handshake timeout|deadline exceeded|unexpected EOF|server is currently unable|too many requests|etcdserver:/i;
/** About what Flux may do in the cluster, and not about the content. */
const IS_OF_ACCESS = /kubeconfig|unauthorized|cannot \w+ resource/i;

/** The reasons of a Kustomization that are about the revision, and what is to blame. Others may pass by themselves. */
const FAILURES: Readonly<Record<string, ObjectStatus['fault']>> = {
  BuildFailed: 'content',
  ReconciliationFailed: 'content',
  PruneFailed: 'node',
  HealthCheckFailed: 'node',
};

/** As git, registries and Flux say that there is no such commit, branch, artifact or bucket. */
const IS_ABSENT =
  /object not found|unable to resolve commit object|reference not found|couldn't find remote ref|manifest[_ ]unknown|bucket '[^']*' not found/i;

const MOST_CHARACTERS = 1_000;
const shown = (condition: Condition): string =>
  `Ready=${String(condition.status)}: ${wordsOf(condition)}`.slice(0, MOST_CHARACTERS);

const CURRENT: ObjectStatus = { is: 'current', message: '' };
const waits = (message: string): ObjectStatus => ({ is: 'in-progress', message });
const fails = (condition: Condition, fault: ObjectStatus['fault'] = 'node'): ObjectStatus => ({
  is: 'failed',
  message: wordsOf(condition).slice(0, MOST_CHARACTERS),
  fault,
});
