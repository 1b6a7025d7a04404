import {
  aliveSubject,
  configKey,
  CONFIGS,
  nodeInbox,
  nodeToken,
  OBJECT_SUBJECTS,
  OBJECTS,
  pushSubject,
  REPORT_KINDS,
  reportSubject,
} from '#libs/contracts';
import { kvStream, kvSubject } from '../topology.js';

/** The subjects that a user may publish and subscribe to. `responses`: it may answer requests that it got. */
export interface Access {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
  readonly responses: boolean;
}

/** What crosses the wall between the account of the services and that of the nodes. */
export interface Crossings {
  /** Requests to the services and to JetStream, and what is published into streams. */
  readonly toServices: readonly string[];
  /** What nodes publish without an answer. */
  readonly fromNodes: readonly string[];
  /** What services publish without an answer. */
  readonly toNodes: readonly string[];
  /** Requests to nodes. */
  readonly requestsToNodes: readonly string[];
}

/** The request that reads the last message of a subject. The subject is a part of it, so permissions can name it. */
const directGet = (stream: string, subject: string): string => `$JS.API.DIRECT.GET.${stream}.${subject}`;
const viewGet = (bucket: string, token: string): string => directGet(kvStream(bucket), kvSubject(bucket, token));

const PUSHES = ['leases', 'status', 'pace'] as const;
const REQUESTS = ['paths', 'why'] as const;

/** All subjects of one node, or of every node with `*`. */
const subjectsOf = (node: string, hash: string) => ({
  reports: REPORT_KINDS.map((kind) => reportSubject(kind, node)),
  reads: [
    viewGet('leases', nodeToken(node)),
    viewGet('status', nodeToken(node)),
    directGet(kvStream(CONFIGS), kvSubject(CONFIGS, configKey(node, hash))),
    // A node that knows the hash of an object may read it.
    directGet(OBJECTS, OBJECT_SUBJECTS),
  ],
});

/** What the applier of one machine needs, and nothing else. */
export function nodeAccess(node: string): Access {
  const { reports, reads } = subjectsOf(node, '*');
  return {
    publish: [...reports, ...reads, aliveSubject(node)],
    subscribe: [`${nodeInbox(node)}.>`, `push.*.${nodeToken(node)}`],
    responses: true,
  };
}

/** What all nodes together need from the account of the services. */
export function crossings(): Crossings {
  const { reports, reads } = subjectsOf('*', '*');
  return {
    toServices: [...reports, ...reads],
    fromNodes: [aliveSubject('*')],
    toNodes: PUSHES.map((push) => pushSubject(push, '*')),
    requestsToNodes: REQUESTS.map((request) => pushSubject(request, '*')),
  };
}
