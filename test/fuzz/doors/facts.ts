import { FACT_TYPES, subjectKeys, type FactType } from '#libs/contracts';
import type { Chance } from '../../simulation/world/chance.js';
import { unreadable, type Example } from '../junk.js';
import type { DeliveredJunk } from './door.js';

const TOKENS = {
  change: 'c999999',
  hash: 'ab'.repeat(32),
  node: 'nobody',
  pool: 'nobody',
  sequence: '999999999',
} as const;
const BODY: Example = {
  v: 1,
  at: '2026-01-01T00:00:00.000Z',
  change: TOKENS.change,
  node: TOKENS.node,
  pool: TOKENS.pool,
  hash: TOKENS.hash,
};

/** Every type of fact that services append. */
export const FOREIGN_TYPES: readonly FactType[] = FACT_TYPES.filter((type) => !type.startsWith('ledger.'));

/** A message with a subject of the ledger that no service can have written. */
export function badFact(chance: Chance, type: FactType = chance.pick(FOREIGN_TYPES)): DeliveredJunk {
  const subject = [type, ...subjectKeys(type).map((key) => TOKENS[key])].join('.');
  const raw = (what: string, body: object): DeliveredJunk => ({
    what,
    subject,
    body: Buffer.from(JSON.stringify(body)),
    unreadable: true,
  });
  return chance.pick<() => DeliveredJunk>([
    () => ({ ...unreadable(chance, BODY), subject }),
    () => raw('a later version', { ...BODY, v: chance.pick([2, 7, 4_294_967_295]) }),
    () => raw('a wrong type', { ...BODY, at: { a: 1 } }),
    () => raw('an invalid version', { ...BODY, v: 'one' }),
  ])();
}
