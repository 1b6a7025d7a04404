import type { KubeConnection } from './connection.js';
import { isKubeStatus } from './errors.js';

/** An event of an object, as `kubectl describe` shows it. */
export interface ObjectEvent {
  /** Derived from what happened, so that writing it twice makes one event. */
  readonly name: string;
  readonly about: { readonly apiVersion: string; readonly kind: string; readonly name: string; readonly uid: string };
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
  /** RFC 3339. */
  readonly at: string;
}

/** Events about cluster-scoped objects are in this namespace. */
const EVENTS = '/api/v1/namespaces/default/events';
/** The limit of the API server. */
const MOST_CHARACTERS = 1_024;

/** Writes an event, once. The API server deletes it after an hour. */
export async function tellEvent(
  connection: KubeConnection,
  { name, about, type, reason, message, at }: ObjectEvent,
  manager: string,
): Promise<void> {
  const time = at.replace(/\.\d+/, '');
  const body = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name, namespace: 'default' },
    involvedObject: about,
    type,
    reason,
    message: message.slice(0, MOST_CHARACTERS),
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
    source: { component: manager },
    reportingComponent: manager,
    reportingInstance: '',
  };
  try {
    await connection.ask({ method: 'POST', path: `${EVENTS}?fieldManager=${manager}`, body });
  } catch (error) {
    if (!isKubeStatus(error, 409)) throw error;
  }
}
