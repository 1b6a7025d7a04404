import type { KubeConnection } from './connection.js';
import { isKubeStatus } from './errors.js';

/** Something that happened to an object, as `kubectl describe` shows it. */
export interface ObjectEvent {
  /** What happened makes the name: told twice, it is one event. */
  readonly name: string;
  readonly about: { readonly apiVersion: string; readonly kind: string; readonly name: string; readonly uid: string };
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
  /** RFC 3339. */
  readonly at: string;
}

/** Events about what is in no namespace are in this one. */
const EVENTS = '/api/v1/namespaces/default/events';
/** An API server takes no longer ones. */
const MOST_CHARACTERS = 1_024;

/** Tells an event, once. The API server forgets it after an hour. */
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
