import type { FleetClient } from '#libs/client';
import { UnreachableError } from '../ports.js';

export interface AdmissionOptions {
  /** The node of the hub that is the other fleet. */
  readonly name: string;
  readonly source: string;
  readonly hub: FleetClient;
}

/**
 * Throws UnreachableError unless this hub may publish in the other fleet as this source. A fleet cannot be the hub
 * itself, a hub has a fleet only once, and a source of a fleet has one hub. Otherwise each of the two would abort the
 * changes of the other.
 */
export async function admit(fleet: FleetClient, { name, source, hub }: AdmissionOptions): Promise<void> {
  const [own, other] = await Promise.all([hub.identity(), fleet.identity()]);
  if (own === other)
    throw new UnreachableError(
      `${fleet.server} has the ledger of this hub: a fleet needs a NATS server and services of its own, so correct the server of ${name}`,
    );
  for (const { hub: by, node } of await fleet.hubClaims())
    if (by === own && node !== name && (await isPresent(hub, node)))
      throw new UnreachableError(
        `the node ${node} of this hub is the same fleet: remove one of the two entries. If ${node} was renamed to ${name}, run sluice remove ${node}`,
      );
  const { claim, revision } = await fleet.hubClaim(source);
  if (claim?.hub === own && claim.node === name) return;
  if (claim !== undefined && claim.hub !== own)
    throw new UnreachableError(
      `the hub at ${claim.server}, whose node ${claim.node} is this fleet, publishes there as the source ${source} since ${claim.since}: give the entry of ${name} another source. If that hub is gone, delete the key ${source} of the bucket hubs at ${fleet.server}`,
    );
  const now = { hub: own, node: name, server: hub.server, since: new Date().toISOString() };
  if (!(await fleet.claimSource(source, now, revision)))
    throw new UnreachableError(`another hub began to publish there as the source ${source} just now`);
}

/** A node that was removed from the hub is no longer that fleet. */
async function isPresent(hub: FleetClient, node: string): Promise<boolean> {
  const view = await hub.get('nodes', node);
  return view !== undefined && view.state !== 'gone';
}
