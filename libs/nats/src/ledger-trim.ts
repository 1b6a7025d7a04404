import { LEDGER, SERVICES, type ServiceName } from '#libs/contracts';
import { trim, type Handlers, type TrimPort, type TrimResult } from '#libs/engine';
import type { Logger } from '#libs/process';
import { carryOut } from './carry-out.js';
import type { Bus } from './connection.js';
import { Snapshots } from './snapshots.js';

export interface TrimOptions {
  readonly bus: Bus;
  /** How long every fact is kept. */
  readonly keepMs: number;
  /** All services that fold the ledger. */
  readonly services?: readonly ServiceName[];
  readonly logger: Logger;
}

/** Deletes facts that are older than `keepMs` and covered by a snapshot of every service. */
export function trimLedger({ bus, keepMs, logger, services = SERVICES }: TrimOptions): Promise<TrimResult> {
  const snapshots = new Snapshots(bus);
  const handlers: Handlers<TrimPort> = {
    ...snapshots.handlers,
    'remove-snapshot': ({ snapshot }) => snapshots.remove(snapshot),
    'ledger-age': async () => {
      const { state, ts } = await bus.streamInfo(LEDGER);
      return {
        first: state.first_seq,
        last: state.last_seq,
        messages: state.messages,
        firstStoredMs: Date.parse(state.first_ts),
        nowMs: Date.parse(ts ?? ''),
      };
    },
    'stored-at': async ({ sequence }) => (await bus.stored(LEDGER, { seq: sequence }))?.time.getTime(),
    purge: async ({ upTo }) => (await bus.unlessLost(() => bus.jsm.streams.purge(LEDGER, { seq: upTo + 1 }))).purged,
    log: ({ level, text, details }) => logger[level](details, text),
  };
  return carryOut(trim(services, keepMs), handlers);
}
