import { isObject, kindOf, ROLLOUT_KIND } from '#libs/manifests';
import type { Content } from '../resource.js';

/** The relevant part of a request of an API server. */
export interface AdmissionRequest {
  readonly uid: string;
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE';
  readonly kind: string;
  readonly name: string;
  readonly user: string;
  readonly groups: readonly string[];
  /** The desired object; undefined for a deletion. */
  readonly object: WrittenObject | undefined;
  /** The existing object; undefined for a creation. */
  readonly before: WrittenObject | undefined;
}

export interface WrittenObject extends Content {
  readonly deleting: boolean;
}

/** The same for a Rollout, of which only the pause matters. */
export interface RolloutRequest extends Pick<AdmissionRequest, 'uid' | 'name' | 'user' | 'groups'> {
  readonly operation: 'CREATE' | 'UPDATE';
  readonly kind: typeof ROLLOUT_KIND;
  readonly paused: boolean | undefined;
  readonly wasPaused: boolean | undefined;
}

interface OtherRequest {
  readonly uid: string;
  readonly operation: 'other';
}

/**
 * Reads the body of an AdmissionReview: the request, the uid of a request that does not concern us, or undefined if it
 * is not a review.
 */
export function readReview(body: unknown): AdmissionRequest | RolloutRequest | OtherRequest | undefined {
  const request = isObject(body) ? body['request'] : undefined;
  if (!isObject(body) || body['kind'] !== 'AdmissionReview' || !isObject(request) || typeof request['uid'] !== 'string')
    return undefined;
  const { uid, operation } = request;
  const { kind } = fieldsOf(request['kind']);
  if (kind === ROLLOUT_KIND) return readRollout(uid, request);
  const isOurs = operation === 'CREATE' || operation === 'UPDATE' || operation === 'DELETE';
  if (!isOurs || typeof kind !== 'string' || kindOf(kind) === undefined || (request['subResource'] ?? '') !== '')
    return { uid, operation: 'other' };
  const [object, before] = [
    operation === 'DELETE' ? undefined : objectOf(kind, request['object']),
    operation === 'CREATE' ? undefined : objectOf(kind, request['oldObject']),
  ];
  if (operation === 'DELETE' ? before === undefined : object === undefined) return undefined;
  return {
    uid,
    operation,
    kind,
    name: object?.name ?? before?.name ?? textOf(request['name']),
    ...whoOf(request),
    object,
    before,
  };
}

function readRollout(uid: string, request: Readonly<Record<string, unknown>>): RolloutRequest | OtherRequest {
  const { operation } = request;
  if ((operation !== 'CREATE' && operation !== 'UPDATE') || (request['subResource'] ?? '') !== '')
    return { uid, operation: 'other' };
  const object = fieldsOf(request['object']);
  const name = textOf(fieldsOf(object['metadata'])['name']) || textOf(request['name']);
  return {
    uid,
    operation,
    kind: ROLLOUT_KIND,
    name,
    ...whoOf(request),
    paused: pausedOf(object),
    wasPaused: pausedOf(fieldsOf(request['oldObject'])),
  };
}

function pausedOf(object: Readonly<Record<string, unknown>>): boolean | undefined {
  const { paused } = fieldsOf(object['spec']);
  return typeof paused === 'boolean' ? paused : undefined;
}

function whoOf(request: Readonly<Record<string, unknown>>): Pick<AdmissionRequest, 'user' | 'groups'> {
  const { username, groups } = fieldsOf(request['userInfo']);
  return {
    user: textOf(username),
    groups: Array.isArray(groups) ? groups.filter((group) => typeof group === 'string') : [],
  };
}

function objectOf(kind: string, value: unknown): WrittenObject | undefined {
  if (!isObject(value)) return undefined;
  const { name, labels, deletionTimestamp } = fieldsOf(value['metadata']);
  return {
    kind,
    name: textOf(name),
    labels: fieldsOf(labels) as Content['labels'],
    spec: value['spec'],
    deleting: deletionTimestamp !== undefined,
  };
}

const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> => (isObject(value) ? value : {});
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
