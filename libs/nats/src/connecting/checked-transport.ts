import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import { errors } from '@nats-io/nats-core';
import { setTransportFactory } from '@nats-io/nats-core/internal';
import type { NodeConnectionOptions } from '@nats-io/transport-node';
import { nodeResolveHost, NodeTransport } from '@nats-io/transport-node/lib/node_transport.js';
import { ClientCertificateError, type DialFailure } from './access-problem.js';

/** Options of the client, and a callback for why a connection to a server failed. */
export type CheckedOptions = NodeConnectionOptions & { readonly dialFailed: (failure: DialFailure) => void };

type Address = Parameters<NodeTransport['connect']>[0];

/** Makes the client use the transport below. The client has one factory for all connections of a process. */
export function useCheckedTransport(): void {
  setTransportFactory({ factory: () => new CheckedTransport(), dnsResolveFn: nodeResolveHost });
}

/** The greeting of a server, and its answer to the credentials, are in the first few kilobytes. */
const GREETING_BYTES = 64 * 1_024;

/**
 * The client's transport, with two differences. It reports why a server cannot be used: the client says nothing when
 * several servers fail in different ways, nor when a server closes the connection over a client certificate. And it
 * checks certificates of servers that are addressed by IP: the client compares those with the name "localhost".
 */
class CheckedTransport extends NodeTransport {
  private host = '';
  /** The server announced that it checks client certificates. */
  private isChecked = false;

  override async connect(address: Address, options: NodeConnectionOptions): Promise<void> {
    this.host = address.tlsName === '' ? address.hostname : address.tlsName;
    const failed = (error: Error): void =>
      (options as CheckedOptions).dialFailed({
        server: `${this.host}:${address.port}`,
        address: `${address.hostname}:${address.port}`,
        error,
      });
    try {
      await super.connect(address, options);
    } catch (error) {
      failed(error as Error);
      throw error;
    }
    this.awaitWelcome(failed);
  }

  override async peekInfo(): ReturnType<NodeTransport['peekInfo']> {
    const info = await super.peekInfo();
    this.isChecked = info.tls_verify === true;
    // Otherwise Node.js would only report that the connection was closed, and the client would wait for an answer until
    // its timeout.
    if (this.isChecked && this.options.tls?.certFile === undefined)
      throw new ClientCertificateError('the server requires a client certificate');
    return info;
  }

  override startTLS(): ReturnType<NodeTransport['startTLS']> {
    const identity = (_name: string, certificate: PeerCertificate): Error | undefined =>
      checkServerIdentity(this.host, certificate);
    // The client hands unknown TLS options on to Node.js.
    this.options = { ...this.options, tls: { ...this.options.tls, checkServerIdentity: identity } as object };
    return super.startTLS();
  }

  /** Reads what the server sends until it has accepted the credentials. */
  private awaitWelcome(failed: (error: Error) => void): void {
    let greeting = '';
    let isOver = false;
    const { socket } = this;
    const end = (error?: Error): void => {
      if (isOver) return;
      isOver = true;
      socket.off('data', listen);
      if (error !== undefined) failed(error);
    };
    const listen = (chunk: Buffer): void => {
      greeting += chunk.toString('latin1');
      const [, refusal] = /-ERR '([^']*)'/.exec(greeting) ?? [];
      if (refusal !== undefined) end(errors.AuthorizationError.parse(refusal) ?? new Error(refusal));
      else if (greeting.includes('PONG') || greeting.length > GREETING_BYTES) end();
    };
    socket.on('data', listen);
    void this.closed().then((error) => end(this.reasonOf(error as NodeJS.ErrnoException | undefined)));
  }

  /** The alert about a certificate is lost if it arrives after data that the client has already sent. */
  private reasonOf(error: NodeJS.ErrnoException | undefined): Error {
    const isReset = error === undefined || error.code === 'ECONNRESET' || error.code === 'EPIPE';
    if (isReset && this.isChecked) return new ClientCertificateError('it closed the connection', { cause: error });
    return error ?? new Error('the server closed the connection');
  }
}
