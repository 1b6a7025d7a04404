import type { Chance } from '../../simulation/world/chance.js';

/** Headers that nobody asked for: ids that stand twice, junk in those that mean something to the server or to tools. */
export function oddHeaders(chance: Chance): Readonly<Record<string, string>> {
  return chance.pick<Readonly<Record<string, string>>>([
    {},
    {},
    {},
    { 'Nats-Msg-Id': chance.pick(['', 'twice', 'x'.repeat(5_000), 'a:b:c']) },
    { traceparent: 'not a trace', 'Content-Type': 'application/x-yaml' },
    { 'Nats-Service-Error-Code': '200', 'KV-Operation': 'DEL' },
    { 'X-Junk': 'j'.repeat(20_000), ünïcode: '✓' },
  ]);
}
