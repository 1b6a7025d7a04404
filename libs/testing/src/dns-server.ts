import { createSocket, type Socket } from 'node:dgram';
import type { AddressInfo } from 'node:net';

const [NO_ERROR, SERVER_FAILURE, NO_SUCH_NAME] = [0, 2, 3];
const HEADER_BYTES = 12;
/** A record of type A and class IN, for the name in the question, with a TTL of 0 s and four bytes of data. */
const RECORD = Buffer.from('c00c00010001000000000004', 'hex');
const TYPE_A = 1;

/** A DNS server on the loopback address that knows the IPv4 addresses of some names. */
export class DnsServer {
  /** By name, in the order in which they are answered. */
  readonly addresses = new Map<string, readonly string[]>();
  /** Every name that was asked for. */
  readonly questions: string[] = [];
  /** It answers that it has failed. */
  isFailing = false;

  private constructor(private readonly socket: Socket) {
    socket.on('message', (question, { address, port }) => socket.send(this.answer(question), port, address));
  }

  static async start(): Promise<DnsServer> {
    const socket = createSocket('udp4');
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
    return new DnsServer(socket);
  }

  /** As `dns.setServers` takes it. */
  get address(): string {
    return `127.0.0.1:${(this.socket.address() as AddressInfo).port}`;
  }

  close(): Promise<void> {
    return new Promise((resolve) => this.socket.close(() => resolve()));
  }

  private answer(message: Buffer): Buffer {
    const labels: string[] = [];
    let at = HEADER_BYTES;
    for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
      labels.push(message.toString('latin1', at + 1, at + 1 + length));
      at += 1 + length;
    }
    const name = labels.join('.').toLowerCase();
    this.questions.push(name);
    const isForAddress = message.readUInt16BE(at + 1) === TYPE_A;
    const known = this.isFailing ? undefined : this.addresses.get(name);
    const found = isForAddress ? (known ?? []) : [];
    const code = this.isFailing ? SERVER_FAILURE : known === undefined ? NO_SUCH_NAME : NO_ERROR;
    const head = Buffer.alloc(HEADER_BYTES);
    message.copy(head, 0, 0, 2);
    head.writeUInt16BE(0x8180 | code, 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(found.length, 6);
    const records = found.map((address) => Buffer.concat([RECORD, Buffer.from(address.split('.').map(Number))]));
    return Buffer.concat([head, message.subarray(HEADER_BYTES, at + 5), ...records]);
  }
}
