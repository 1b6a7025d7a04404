import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Program } from '#libs/api-servers';
import { Guard } from '#libs/process';
import { findStore, type StoreProgram } from './stores.js';

/** A running program from which Flux fetches. It ends when this process does. */
export class Store {
  private constructor(
    readonly folder: string,
    readonly port: number,
    private readonly program: Program,
    private readonly guard: Guard,
  ) {}

  /** `saysPort` matches what it logs once it listens. */
  static async start(name: StoreProgram, args: () => readonly string[], saysPort: RegExp): Promise<Store> {
    const path = await findStore(name);
    const folder = await mkdtemp(join(tmpdir(), 'sluice-store-'));
    const program = new Program(folder, path, args()).start();
    const guard = new Guard();
    guard.watch([program.pid]);
    const port = (): number => Number(saysPort.exec(readFileSync(join(folder, `${name}.log`), 'utf8'))?.[1] ?? 0);
    await program.untilReady(() => port() > 0);
    return new Store(folder, port(), program, guard);
  }

  async send(
    method: string,
    path: string,
    body: Buffer,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Response> {
    const answer = await fetch(`http://127.0.0.1:${this.port}${path}`, { method, headers, body: new Uint8Array(body) });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer;
  }

  async stop(): Promise<void> {
    await this.program.end();
    this.guard.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}
