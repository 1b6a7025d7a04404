import { isObject, kindOf } from '#libs/manifests';
import type { Content } from './object.js';

/** What an API server asks, as far as it matters here. */
export interface AdmissionRequest {
  readonly uid: string;
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE';
  readonly kind: string;
  readonly name: string;
  readonly user: string;
  readonly groups: readonly string[];
  /** What shall be; nothing for a deletion. */
  readonly object: WrittenObject | undefined;
  /** What is there; nothing for a creation. */
  readonly before: WrittenObject | undefined;
}

export interface WrittenObject extends Content {
  readonly deleting: boolean;
}

/** Reads the body of an AdmissionReview: the request, the uid of one that is none of ours, or nothing for what is no review at all. */
export function readReview(body: unknown): AdmissionRequest | { readonly uid: string; readonly operation: 'other' } | undefined {
  const request = isObject(body) ? body['request'] : undefined;
  if (!isObject(body) || body['kind'] !== 'AdmissionReview' || !isObject(request) || typeof request['uid'] !== 'string') return undefined;
  const { uid, operation } = request;
  const { kind } = fieldsOf(request['kind']);
  const isOurs = operation === 'CREATE' || operation === 'UPDATE' || operation === 'DELETE';
  if (!isOurs || typeof kind !== 'string' || kindOf(kind) === undefined || (request['subResource'] ?? '') !== '') return { uid, operation: 'other' };
  const [object, before] = [operation === 'DELETE' ? undefined : objectOf(kind, request['object']), operation === 'CREATE' ? undefined : objectOf(kind, request['oldObject'])];
  if (operation === 'DELETE' ? before === undefined : object === undefined) return undefined;
  const { username, groups } = fieldsOf(request['userInfo']);
  return {
    uid, operation, kind, name: object?.name ?? before?.name ?? textOf(request['name']), user: textOf(username), groups: Array.isArray(groups) ? groups.filter((group) => typeof group === 'string') : [], object, before,
  };
}

function objectOf(kind: string, value: unknown): WrittenObject | undefined {
  if (!isObject(value)) return undefined;
  const { name, labels, deletionTimestamp } = fieldsOf(value['metadata']);
  return { kind, name: textOf(name), labels: fieldsOf(labels) as Content['labels'], spec: value['spec'], deleting: deletionTimestamp !== undefined };
}

const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> => (isObject(value) ? value : {});
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
