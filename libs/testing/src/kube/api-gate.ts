import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Agent, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { KubeAccess } from '#libs/api-servers';

/** What the gate does with a request. */
export type GateMode =
  | { readonly does: 'pass' }
  /** Answers itself, like an API server in trouble. */
  | { readonly does: 'refuse'; readonly code: number; readonly reason: string }
  /** Takes a request and never answers. */
  | { readonly does: 'stall' }
  /** Forwards every request after this delay. For a watch, the delay applies to its start. */
  | { readonly does: 'delay'; readonly ms: number };

const PASS: GateMode = { does: 'pass' };

/**
 * A proxy in front of an API server, in plain HTTP, that can simulate trouble. Other requests reach the real server.
 */
export class ApiGate {
  mode: GateMode = PASS;
  /** The trouble affects only requests whose line (`GET /api/v1/nodes?…`) matches. */
  about = /./;
  /** What has not arrived yet of answers that are held back, in order. */
  private readonly late: (() => void)[] = [];
  private heldBack: RegExp | undefined;
  /** Called with the line of each request before anything else. It may change the mode. */
  onRequest: (line: string) => void = () => undefined;
  /** The lines of all requests that arrived. */
  readonly requests: string[] = [];
  /** Those that the API server refused because of a missing right. */
  readonly forbidden: string[] = [];
  private readonly agent: Agent;
  private readonly open = new Set<ServerResponse>();

  private constructor(
    private readonly access: KubeAccess,
    private readonly server: Server,
  ) {
    this.agent = new Agent({ ca: access.ca, keepAlive: true });
    server.on('request', (incoming: IncomingMessage, answer: ServerResponse) => this.take(incoming, answer));
  }

  static async before(access: KubeAccess): Promise<ApiGate> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new ApiGate(access, server);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** From now on, nothing more arrives of the answers to requests with such lines, also if they have begun. */
  holdBack(lines: RegExp): void {
    this.heldBack = lines;
  }

  /** Everything that was held back arrives. */
  letPass(): void {
    this.heldBack = undefined;
    for (const arrive of this.late.splice(0)) arrive();
  }

  /** Resets every connection, including watches. */
  cut(): void {
    for (const answer of this.open) answer.socket?.resetAndDestroy();
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    this.agent.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private take(incoming: IncomingMessage, answer: ServerResponse): void {
    const line = `${incoming.method} ${incoming.url}`;
    this.requests.push(line);
    this.onRequest(line);
    this.open.add(answer);
    answer.once('close', () => this.open.delete(answer));
    const { mode } = this;
    const troubled = this.about.test(line);
    if (troubled && mode.does === 'stall') return;
    if (troubled && mode.does === 'refuse') {
      answer.writeHead(mode.code, { 'content-type': 'application/json' });
      answer.end(
        JSON.stringify({
          kind: 'Status',
          apiVersion: 'v1',
          status: 'Failure',
          reason: mode.reason,
          message: `the gate says ${mode.reason}`,
          code: mode.code,
        }),
      );
      return;
    }
    if (troubled && mode.does === 'delay') {
      const timer = setTimeout(() => this.pass(incoming, answer), mode.ms);
      answer.once('close', () => clearTimeout(timer));
      return;
    }
    this.pass(incoming, answer);
  }

  private pass(incoming: IncomingMessage, answer: ServerResponse): void {
    const { host: _, ...headers } = incoming.headers;
    const onward = request(
      `${this.access.server}${incoming.url}`,
      {
        method: incoming.method ?? 'GET',
        agent: this.agent,
        headers: { ...headers, authorization: `Bearer ${this.access.token}` },
      },
      (found) => {
        const line = `${incoming.method} ${incoming.url}`;
        if (found.statusCode === 403) this.forbidden.push(line);
        const arrive = (part: () => void): void =>
          void (this.heldBack?.test(line) === true ? this.late.push(part) : part());
        arrive(() => answer.writeHead(found.statusCode ?? 500, found.headers));
        found.on('data', (chunk: Buffer) => arrive(() => answer.write(chunk)));
        found.once('end', () => arrive(() => answer.end()));
        found.once('error', () => answer.destroy());
      },
    );
    onward.once('error', () => answer.destroy());
    answer.once('close', () => onward.destroy());
    incoming.pipe(onward);
  }
}
