import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { BudgetWitness } from './budget-witness.js';
import type { Files, NodeFolders } from './node-folders.js';

/** Decides whether something applies to a node with these files. */
export type Predicate = (node: string, files: Files) => boolean;

/**
 * The service that the HTTP probe of the fleet calls, with one path per node. It reads the files of the node at that
 * moment. It can answer that the node is unhealthy, or let it wait in the middle of its change for as long as a test
 * needs.
 */
export class Gate {
  /** Nodes that wait for an answer now. */
  readonly held = new Set<string>();
  /** Every request: the node, and its files at that moment. */
  readonly requests: { readonly node: string; readonly files: Files }[] = [];
  /** Answers 500 if this returns true. */
  isUnhealthy: Predicate = () => false;
  /** How long an answer takes. */
  slownessMs: (node: string, files: Files) => number = () => 0;
  /** Called while the node waits for its answer. */
  meanwhile: (node: string, files: Files) => Promise<void> = () => Promise.resolve();
  private isHeld: Predicate = () => false;
  private opened: (() => void)[] = [];
  private readonly server: Server;

  constructor(
    private readonly folders: NodeFolders,
    private readonly witness: BudgetWitness,
  ) {
    this.server = createServer((request, response) => {
      void this.judge(decodeURIComponent((request.url ?? '/').slice(1))).then((status) =>
        response.writeHead(status).end(),
      );
    });
  }

  async open(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
  }

  async close(): Promise<void> {
    this.release();
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  /** The URL of the probe, with a template for the name of the node. */
  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/{{ node.name }}`;
  }

  /** From now on, nodes for which this returns true must wait. */
  hold(judge: Predicate): void {
    this.isHeld = judge;
  }

  /** Answers all waiting nodes, and holds no further ones. */
  release(): void {
    this.isHeld = () => false;
    for (const open of this.opened.splice(0)) open();
  }

  private async judge(node: string): Promise<number> {
    const files = this.folders.files(node);
    this.requests.push({ node, files });
    if (this.isHeld(node, files)) {
      this.held.add(node);
      await new Promise<void>((resolve) => this.opened.push(resolve));
      this.held.delete(node);
    }
    await this.meanwhile(node, files);
    const slownessMs = this.slownessMs(node, files);
    if (slownessMs > 0) await new Promise((resolve) => setTimeout(resolve, slownessMs));
    await this.witness.seenTwice();
    return this.isUnhealthy(node, files) ? 500 : 200;
  }
}
