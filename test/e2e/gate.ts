import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { BudgetWitness } from './budget-witness.js';
import type { Files, NodeFolders } from './node-folders.js';

/** Whether something holds for a node with these files. */
export type Judge = (node: string, files: Files) => boolean;

/**
 * The service that the fleet's HTTP probe asks, one path per node. It sees the node's files at that moment, and can say
 * that the node is sick, or let it wait in the middle of its change for as long as a spec needs.
 */
export class Gate {
  /** Nodes that wait for an answer now. */
  readonly held = new Set<string>();
  /** Every question: which node, with which files. */
  readonly asked: { readonly node: string; readonly files: Files }[] = [];
  /** Answers 500 where this holds. */
  isSick: Judge = () => false;
  /** How long an answer takes. */
  slownessMs: (node: string, files: Files) => number = () => 0;
  /** What is looked at while the node waits for its answer. */
  meanwhile: (node: string, files: Files) => Promise<void> = () => Promise.resolve();
  private isHeld: Judge = () => false;
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

  /** What to ask about the node that the template names. */
  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/{{ node.name }}`;
  }

  /** From now on nodes for which this holds wait. */
  hold(judge: Judge): void {
    this.isHeld = judge;
  }

  /** Lets all go on, and holds nobody any more. */
  release(): void {
    this.isHeld = () => false;
    for (const open of this.opened.splice(0)) open();
  }

  private async judge(node: string): Promise<number> {
    const files = this.folders.files(node);
    this.asked.push({ node, files });
    if (this.isHeld(node, files)) {
      this.held.add(node);
      await new Promise<void>((resolve) => this.opened.push(resolve));
      this.held.delete(node);
    }
    await this.meanwhile(node, files);
    const slownessMs = this.slownessMs(node, files);
    if (slownessMs > 0) await new Promise((resolve) => setTimeout(resolve, slownessMs));
    await this.witness.seenTwice();
    return this.isSick(node, files) ? 500 : 200;
  }
}
