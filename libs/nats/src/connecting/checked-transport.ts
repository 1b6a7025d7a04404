import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import { errors } from '@nats-io/nats-core';
import { setTransportFactory } from '@nats-io/nats-core/internal';
import type { NodeConnectionOptions } from '@nats-io/transport-node';
import { nodeResolveHost, NodeTransport } from '@nats-io/transport-node/lib/node_transport.js';
import { ClientCertificateError, type DialFailure } from './access-problem.js';

/** Options of the client, and who hears why a connection to a server failed. */
export type CheckedOptions = NodeConnectionOptions & { readonly dialFailed: (failure: DialFailure) => void };

type Address = Parameters<NodeTransport['connect']>[0];

/** Has the client use the transport below; it has one factory for all connections of a process. */
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
  /** The server said that it checks client certificates. */
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
    // Node.js would only hear that the connection was closed, and the client wait for an answer until its timeout.
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

  /** Hears what the server says until it has accepted the credentials. */
  private awaitWelcome(failed: (error: Error) => void): void {
    let said = '';
    let isOver = false;
    const { socket } = this;
    const end = (error?: Error): void => {
      if (isOver) return;
      isOver = true;
      socket.off('data', listen);
      if (error !== undefined) failed(error);
    };
    const listen = (chunk: Buffer): void => {
      said += chunk.toString('latin1');
      const [, refusal] = /-ERR '([^']*)'/.exec(said) ?? [];
      if (refusal !== undefined) end(errors.AuthorizationError.parse(refusal) ?? new Error(refusal));
      else if (said.includes('PONG') || said.length > GREETING_BYTES) end();
    };
    socket.on('data', listen);
    void this.closed().then((error) => end(this.reasonOf(error as NodeJS.ErrnoException | undefined)));
  }

  /** The alert about a certificate is lost when it comes after what the client sent meanwhile. */
  private reasonOf(error: NodeJS.ErrnoException | undefined): Error {
    const isReset = error === undefined || error.code === 'ECONNRESET' || error.code === 'EPIPE';
    if (isReset && this.isChecked) return new ClientCertificateError('it closed the connection', { cause: error });
    return error ?? new Error('the server closed the connection');
  }
}
