import type { Chance } from '../../simulation/chance.js';
import { junk, unreadable, type Example, type Junk } from '../junk.js';
import type { Thrown } from './door.js';
import { oddHeaders } from './headers.js';

/** Selects no node: what is right in spite of all changes nothing. */
const FILE: Example = {
  apiVersion: 'sluice.dev/v1alpha1', kind: 'File', metadata: { name: 'fuzz' },
  spec: { nodeSelector: { matchLabels: { role: 'nobody' } }, path: '/etc/fuzz.conf', content: 'x', mode: '0644' },
};
const CHANGE: Example = { apply: [FILE], delete: [{ kind: 'File', name: 'gone' }], message: 'm', author: 'a', strategy: { maxFailures: 1 }, retryOf: '' };
const SPECS: Readonly<Record<string, Example>> = {
  File: { nodeSelector: {}, path: '/etc/x', content: 'x', mode: '0644' },
  Directory: { nodeSelector: {}, path: '/etc/x', mode: '0755' },
  Pool: { nodeSelector: {}, maxUnavailable: '10%', applyTimeout: '1m', drainTimeout: '1m', drift: 'report' },
  Probe: { nodeSelector: {}, tcp: { address: '127.0.0.1:1' }, timeout: '1s', retries: 1 },
  Exec: { nodeSelector: {}, check: ['true'], apply: ['true'] },
  DisruptionPolicy: { nodeSelector: {}, default: [{ kind: 'none' }], files: [{ path: '/etc', actions: [{ kind: 'reboot' }] }] },
  RolloutPolicy: { nodeSelector: {}, maxFailures: 1 },
};

const SOURCES = ['fuzz', 'fuzz', 'fuzz', 'UPPER', 'a.b.c', '__proto__', '-', 'ü', 'x'.repeat(200)];

/** A message to `config.desired.<source>` that cannot be a change, or hardly. */
export function badChange(chance: Chance): Thrown {
  const subject = `config.desired.${chance.pick(SOURCES)}`;
  return { ...chance.pick([() => junk(chance, CHANGE), () => junk(chance, FILE), () => badSpec(chance), () => manyReasons(chance), () => unreadable(chance, CHANGE)])(), subject, headers: oddHeaders(chance) };
}

/** One manifest whose spec has one thing wrong. */
function badSpec(chance: Chance): Junk {
  const kind = chance.pick(Object.keys(SPECS));
  const { body, what, field } = junk(chance, SPECS[kind] as Example);
  const text = `{"apply":[{"apiVersion":"sluice.dev/v1alpha1","kind":"${kind}","metadata":{"name":"fuzz-${chance.whole(1, 9)}"},"spec":`;
  return { what: `${kind}: ${what}`, body: Buffer.concat([Buffer.from(text), body, Buffer.from('}]}')]), unreadable: false, ...(field === undefined ? {} : { field: `spec.${field}` }) };
}

/** So much is wrong that the answer would be larger than a message may be. */
function manyReasons(chance: Chance): Junk {
  const key = chance.pick(['"', 'ä', 'x', '\u2028']).repeat(chance.pick([10, 10_000, 100_000]));
  const wrong = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`k${i}`, i]));
  const body = chance.pick<() => unknown>([
    () => ({ apply: Array.from({ length: 20_000 }, () => 1) }),
    () => ({ delete: Array.from({ length: 20_000 }, () => ({ kind: 'a', name: 'B' })) }),
    () => ({ [key]: 1, apply: [FILE] }),
    () => ({ apply: [{ ...FILE, spec: { ...(FILE['spec'] as object), [key]: wrong, ...wrong } }] }),
    () => ({ apply: [{ ...FILE, metadata: { name: 'fuzz', labels: { [key]: 1, ...wrong } } }] }),
    () => ({ apply: [{ ...FILE, kind: key }] }),
  ])();
  return { what: 'more reasons than an answer holds', body: Buffer.from(JSON.stringify(body)), unreadable: false };
}
