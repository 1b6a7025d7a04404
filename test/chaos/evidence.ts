import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { changeId, decodeFact, LEDGER, type Fact, type FragmentRef, type StatusView } from '#libs/contracts';
import type { WatchedPool, Work } from '../e2e/budget-witness.js';
import type { Fleet, RunningServer } from '../e2e/fleet.js';
import type { Files } from '../e2e/node-folders.js';
import { DrainLog, type DrainAction } from './host/drain-log.js';
import { journalOf, type Journal } from './journals.js';
import { DRAINED } from './shape.js';

/** What was published, as stored in CHANGES. */
export interface PublishedChange {
  readonly change: string;
  readonly body: { readonly apply?: readonly FileWrite[]; readonly delete?: readonly FragmentRef[] };
}
export interface FileWrite {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: Readonly<Record<string, unknown>>;
}

/** What was found on one node. */
export interface NodeEvidence {
  readonly node: string;
  readonly files: Files;
  readonly journal: Journal | undefined;
  readonly status: StatusView | undefined;
  /**
   * The files of the config that its journal names as in force. Undefined if the bucket has no config with that hash.
   */
  readonly inForce: Files | undefined;
  /** Whether a change of its files must restart its unit. */
  readonly restarts: boolean;
  /** The content with which its unit was last started. Undefined if it was never started. */
  readonly runs: string | undefined;
}

/**
 * The input of the oracles: the ledger, what was published, the disks of the nodes, the observations of the witness,
 * and the memory of the processes.
 */
export interface Evidence {
  readonly facts: readonly Fact[];
  readonly published: readonly PublishedChange[];
  /** What was sent, by the id of the change, for all changes whose sender got an acknowledgement. */
  readonly acknowledged: ReadonlyMap<string, PublishedChange['body']>;
  readonly nodes: readonly NodeEvidence[];
  readonly works: readonly Work[];
  readonly pools: readonly WatchedPool[];
  /**
   * Everything that the drainer did, according to its own log, and the nodes that it still holds, with their leases.
   */
  readonly drainer: readonly DrainAction[];
  readonly held: ReadonlyMap<string, string>;
  /** MiB by process, at the end of each round. */
  readonly memory: readonly ReadonlyMap<string, number>[];
}

/** Collects the evidence. Call it while nothing changes. */
export async function gatherEvidence(
  fleet: Fleet<RunningServer>,
  acknowledged: Evidence['acknowledged'],
  memory: Evidence['memory'],
): Promise<Evidence> {
  const events = await fleet.events('>');
  const statuses = await fleet.client.list('status');
  const log = new DrainLog(fleet.data);
  const nodes: NodeEvidence[] = [];
  for (const node of fleet.nodes) nodes.push(await lookAt(fleet, node, statuses.get(node)));
  return {
    facts: events
      .filter(({ stream }) => stream === LEDGER)
      .sort((a, b) => a.sequence - b.sequence)
      .map(({ subject, body }) => decodeFact(subject, JSON.stringify(body))),
    published: events
      .filter(({ subject }) => subject.startsWith('config.desired.'))
      .map(({ sequence, body }) => ({ change: changeId(sequence), body: body as PublishedChange['body'] })),
    acknowledged,
    nodes,
    works: fleet.witness.works,
    pools: fleet.pools,
    memory,
    drainer: log.actions(),
    held: log.held(),
  };
}

/** Repeats until the journal did not change while the files were read. */
async function lookAt(
  fleet: Fleet<RunningServer>,
  node: string,
  status: StatusView | undefined,
): Promise<NodeEvidence> {
  for (;;) {
    const before = journalOf(fleet, node);
    const found = {
      node,
      files: fleet.folders.files(node),
      journal: before,
      status,
      restarts: fleet.hasUnits && fleet.nodesOf(DRAINED).includes(node),
      runs: runsOn(fleet, node),
    };
    const config = before === undefined ? undefined : await fleet.client.config(node, before.inForce);
    if (JSON.stringify(journalOf(fleet, node)) === JSON.stringify(before))
      return { ...found, inForce: config === undefined ? undefined : filesOf(config.fragments) };
  }
}

/** The content with which the unit of a node was last started. */
function runsOn(fleet: Fleet<RunningServer>, node: string): string | undefined {
  const path = join(fleet.folders.root(node), '..', 'runs');
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
}

function filesOf(fragments: readonly { readonly kind: string; readonly spec: object }[]): Files {
  const specs = fragments
    .filter(({ kind }) => kind === 'File')
    .map(({ spec }) => spec as { readonly path: string; readonly content: string });
  return Object.fromEntries(specs.map(({ path, content }) => [path, content]));
}

/** The resident memory of each process in MiB. A process that has just ended is left out. */
export function memoryOf(pids: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const [name, pid] of pids) {
    try {
      const [, kib = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
      found.set(name, Math.round(Number(kib) / 1024));
    } catch {
      // it ended in the meantime
    }
  }
  return found;
}
