import type { Chance } from '../../simulation/world/chance.js';

/** Unexpected headers: duplicate ids, and junk in headers that the server or tools interpret. */
export function oddHeaders(chance: Chance): Readonly<Record<string, string>> {
  return chance.pick<Readonly<Record<string, string>>>([
    {},
    {},
    {},
    { 'Nats-Msg-Id': chance.pick(['', 'twice', 'x'.repeat(5_000), 'a:b:c']) },
    { 'Sluice-Id': chance.pick(['', 'twice', 'x'.repeat(5_000), 'a:b:c', '__proto__']) },
    { traceparent: 'not a trace', 'Content-Type': 'application/x-yaml' },
    { 'Nats-Service-Error-Code': '200', 'KV-Operation': 'DEL' },
    { 'X-Junk': 'j'.repeat(20_000), ünïcode: '✓' },
  ]);
}
