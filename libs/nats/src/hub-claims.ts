import { JetStreamApiError } from '@nats-io/jetstream';
import { HUBS, LEDGER } from '#libs/contracts';
import type { Bus } from './connection.js';
import { REFUSALS } from './errors.js';
import { isDeletion, isStoredDeletion } from './messages.js';
import { readAll } from './stream-reader.js';
import { kvStream, kvSubject } from './topology.js';

/** Which hub publishes here as one source, and what this fleet is called there. */
export interface HubClaim {
  /** The identity of the ledger of the hub. */
  readonly hub: string;
  /** The node of the hub that is this fleet. */
  readonly node: string;
  /** The server of the hub, for people. */
  readonly server: string;
  readonly since: string;
}

/** A claim in a list of all. */
export interface SourceClaim extends HubClaim {
  readonly source: string;
}

/** A claim, and what a write that replaces it must name. */
export interface StoredClaim {
  /** Undefined if there is none, or if something other than Sluice wrote it. */
  readonly claim: HubClaim | undefined;
  readonly revision: number;
}

/**
 * Tells a Sluice from all others, whatever the URL is: the time at which its ledger was created, in nanoseconds. Every
 * server of its cluster says the same.
 */
export async function ledgerIdentity(bus: Bus): Promise<string> {
  const { created } = await bus.streamInfo(LEDGER);
  return created;
}

export async function readHubClaim(bus: Bus, source: string): Promise<StoredClaim> {
  const message = await bus.stored(kvStream(HUBS), { last_by_subj: kvSubject(HUBS, source) });
  if (message === null) return { claim: undefined, revision: 0 };
  return { claim: isStoredDeletion(message) ? undefined : claimIn(message.string()), revision: message.seq };
}

/** The claims of all sources. */
export async function listHubClaims(bus: Bus): Promise<readonly SourceClaim[]> {
  const found: SourceClaim[] = [];
  await readAll(bus, { stream: kvStream(HUBS), lastPerSubject: true }, (message) => {
    const claim = isDeletion(message) ? undefined : claimIn(message.string());
    if (claim !== undefined) found.push({ source: message.subject.slice(kvSubject(HUBS, '').length), ...claim });
  });
  return found;
}

/** Returns false if somebody else was faster. */
export async function writeHubClaim(bus: Bus, source: string, claim: HubClaim, revision: number): Promise<boolean> {
  try {
    await bus.publish(kvSubject(HUBS, source), JSON.stringify(claim), { expect: { lastSubjectSequence: revision } });
    return true;
  } catch (error) {
    if (error instanceof JetStreamApiError && REFUSALS.has(error.code)) return false;
    throw error;
  }
}

function claimIn(text: string): HubClaim | undefined {
  try {
    const { hub, node, server = '', since = '' } = JSON.parse(text) as Partial<HubClaim>;
    return typeof hub === 'string' && typeof node === 'string' ? { hub, node, server, since } : undefined;
  } catch {
    return undefined;
  }
}
