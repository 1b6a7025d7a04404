import { OpsError, type FleetClient } from '#libs/client';
import { nodeToken } from '#libs/contracts';
import type { Logger } from '#libs/process';
import type { ServedTargets } from '../../../services/applier/src/shell/targets/index.js';
import type { ExistingNode, Leaving } from './inventory.js';

export interface LeavesOptions {
  readonly fleet: Pick<FleetClient, 'get' | 'list' | 'request'>;
  readonly served: Pick<ServedTargets, 'leads' | 'announce' | 'forget'>;
  readonly leaving: Leaving;
  readonly log: Logger;
  /** How long a deleted object may be missing before another one with its name is another node. */
  readonly replaceMs?: number;
  readonly everyMs?: number;
  /** After a failure. */
  readonly againMs?: number;
}

const REPLACE_MS = 30_000;
const EVERY_MS = 1_000;
const AGAIN_MS = 5_000;

interface Missing {
  /** When to look at it. */
  readonly dueMs: number;
  readonly outlives: boolean;
}

/**
 * Removes nodes from the fleet whose objects were deleted, also while no copy ran. Every copy knows of them, and the
 * one that serves the node removes it.
 */
export class Leaves {
  private existing: ReadonlyMap<string, ExistingNode> | undefined;
  /** Nodes that are not listed any more. */
  private readonly missing = new Map<string, Missing>();
  private isCompared = false;
  private timer: NodeJS.Timeout | undefined;
  private isStopped = false;
  private pauseMs: number;

  constructor(private readonly options: LeavesOptions) {
    this.pauseMs = options.everyMs ?? EVERY_MS;
  }

  /** These nodes exist now. */
  update(nodes: ReadonlyMap<string, ExistingNode>): void {
    const { replaceMs = REPLACE_MS } = this.options;
    for (const [node, { isReplaced, outlives = false }] of this.existing ?? [])
      if (!nodes.has(node))
        this.missing.set(node, { dueMs: performance.now() + (isReplaced ? replaceMs : 0), outlives });
    for (const node of this.missing.keys()) if (nodes.has(node)) this.missing.delete(node);
    this.existing = nodes;
    this.wake();
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
  }

  private wake(): void {
    if (this.isStopped || this.timer !== undefined) return;
    if (this.isCompared && this.missing.size === 0) return;
    this.timer = setTimeout(() => void this.look(), this.pauseMs).unref();
  }

  private async look(): Promise<void> {
    const { log, everyMs = EVERY_MS } = this.options;
    this.pauseMs = everyMs;
    try {
      if (!this.isCompared) await this.compare();
      const due = [...this.missing].filter(([, { dueMs }]) => performance.now() >= dueMs);
      if (due.length > 0) await this.options.leaving.confirm();
      for (const [node, one] of due) if (this.missing.has(node) && !this.isStopped) await this.consider(node, one);
    } catch (error) {
      log.warn({ error: (error as Error).message }, 'it is not known which nodes have left; trying again');
      this.pauseMs = this.options.againMs ?? AGAIN_MS;
    }
    this.timer = undefined;
    this.wake();
  }

  /** Objects may have been deleted while no copy ran. */
  private async compare(): Promise<void> {
    const { fleet, leaving, replaceMs = REPLACE_MS } = this.options;
    const nodes = [...(await fleet.list('nodes')).values()].filter(
      ({ node, state, labels }) => state !== 'gone' && leaving.isOurs(labels) && this.existing?.has(node) !== true,
    );
    const missing = { dueMs: performance.now() + replaceMs, outlives: leaving.mayOutlive };
    for (const { node } of nodes) if (!this.missing.has(node)) this.missing.set(node, missing);
    this.isCompared = true;
  }

  private async consider(node: string, { outlives }: Missing): Promise<void> {
    const { fleet, served, leaving, log } = this.options;
    try {
      if (!served.leads(node)) return await this.watchOther(node);
      if (!(await leaving.isDeleted(node))) {
        this.missing.delete(node);
        return log.warn({ node }, 'the inventory lists this node no longer, but its object exists: it becomes silent');
      }
      // It must not report once it was removed.
      await served.forget(node, { keepsJournal: outlives });
      if (!this.missing.has(node)) return;
      await fleet.request('ops.node.remove', { node, force: true, by: 'applier', reason: leaving.reason });
      log.info({ node, reason: leaving.reason }, 'the node was removed from the fleet');
      this.left(node);
    } catch (error) {
      if (error instanceof OpsError && error.code === 'not-found') return this.left(node);
      log.warn({ node, error: (error as Error).message }, 'a node that left cannot be removed; trying again');
      this.later(node);
    }
  }

  /** Another copy serves it, and removes it. */
  private async watchOther(node: string): Promise<void> {
    const view = await this.options.fleet.get('nodes', nodeToken(node));
    if (view === undefined || view.state === 'gone') this.missing.delete(node);
    else this.later(node);
  }

  private later(node: string): void {
    const one = this.missing.get(node);
    if (one === undefined) return;
    this.missing.set(node, { ...one, dueMs: performance.now() + (this.options.againMs ?? AGAIN_MS) });
  }

  private left(node: string): void {
    // If another object has its name by now, the fleet does not know that it is there.
    if (!this.missing.delete(node)) this.options.served.announce(node);
  }
}
