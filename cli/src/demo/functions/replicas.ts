import { createServer, type Server } from 'node:http';
import { mkdirSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { FunctionStandIn } from './stand-in.js';

export const REPLICAS = ['cnf-1', 'cnf-2', 'cnf-3', 'cnf-4'] as const;
export type ReplicaName = (typeof REPLICAS)[number];

const POLICIES = 'mwan3/v1/policies';
const RULES = 'mwan3/v1/rules';

/**
 * Four stand-ins for replicas of a network function. They answer its REST API, and route no traffic. A small server
 * plays the host behind each replica: it is reached only by the link wan1.
 */
export class DemoReplicas {
  /** The replica of each call that changed something, in order. */
  readonly writers: ReplicaName[] = [];

  private constructor(
    private readonly standIns: ReadonlyMap<ReplicaName, FunctionStandIn>,
    private readonly host: Server,
  ) {}

  static async start(): Promise<DemoReplicas> {
    const standIns = new Map<ReplicaName, FunctionStandIn>();
    for (const name of REPLICAS) standIns.set(name, await FunctionStandIn.start());
    const host = createServer((request, response) => {
      const name = (request.url ?? '').slice(1) as ReplicaName;
      response.writeHead(replicas.reachesHost(name) ? 200 : 503).end();
    });
    await new Promise<void>((resolve) => host.listen(0, '127.0.0.1', resolve));
    const replicas = new DemoReplicas(standIns, host);
    for (const [name, standIn] of standIns)
      standIn.onCall = (call) => {
        if (!call.startsWith('GET ')) replicas.writers.push(name);
      };
    return replicas;
  }

  /** The URL of the host behind a replica, as a template. */
  get hostUrl(): string {
    return `http://127.0.0.1:${(this.host.address() as AddressInfo).port}/{{ node.name }}`;
  }

  /** Writes the file that lists the replicas, and returns its path. */
  list(folder: string): string {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'password'), 'secret\n', { mode: 0o600 });
    const functions = REPLICAS.map((name) => ({
      name,
      url: new URL(this.of(name).baseUrl).origin,
      labels: { sdewanPurpose: 'edge' },
      passwordFile: 'password',
    }));
    const file = join(folder, 'functions.yaml');
    writeFileSync(file, `${JSON.stringify({ functions }, null, 1)}\n`);
    return file;
  }

  /** The rules that a replica has, as `web:443 → main`. */
  rules(name: ReplicaName): readonly string[] {
    return this.of(name)
      .config.list(RULES)
      .map((rule) => `${String(rule['name'])}:${String(rule['dest_port'])} → ${String(rule['policy'])}`)
      .sort();
  }

  /** The links of the policy, as a replica has them. */
  links(name: ReplicaName): readonly string[] {
    const [policy] = this.of(name).config.list(POLICIES);
    return ((policy?.['members'] ?? []) as readonly { readonly interface: string }[]).map((member) => member.interface);
  }

  /** From now on, a replica answers nothing. */
  cutOff(name: ReplicaName): void {
    this.of(name).troubles.deadAfterCalls = 0;
  }

  connect(name: ReplicaName): void {
    this.of(name).heal();
  }

  /** As if its container had restarted. */
  empty(name: ReplicaName): void {
    this.of(name).empty();
  }

  async close(): Promise<void> {
    for (const standIn of this.standIns.values()) await standIn.close();
    await new Promise((resolve) => this.host.close(resolve));
  }

  private reachesHost(name: ReplicaName): boolean {
    return this.standIns.has(name) && this.links(name).includes('wan1');
  }

  private of(name: ReplicaName): FunctionStandIn {
    return this.standIns.get(name) as FunctionStandIn;
  }
}
