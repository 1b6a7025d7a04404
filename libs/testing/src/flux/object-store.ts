import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { testAuthority } from '../certificates.js';
import { Store } from './store.js';
import type { Files } from './tarball.js';

/** An S3-compatible store on loopback, which keeps everything in memory, behind TLS: Flux wants that. */
export class ObjectStore {
  private readonly etags = new Map<string, string>();

  private constructor(
    private readonly store: Store,
    private readonly front: Server,
    /** Of its certificate. */
    readonly ca: string,
  ) {}

  static async start(bucket: string): Promise<ObjectStore> {
    const store = await Store.start(
      'gofakes3',
      () => ['-backend=memory', '-host=127.0.0.1:0', `-initialbucket=${bucket}`, '-quiet'],
      /using port: (\d+)/,
    );
    const authority = await testAuthority();
    const { certFile, keyFile } = await authority.write(store.folder);
    const front = createServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, (incoming, answer) => {
      const { method, url, headers } = incoming;
      const onward = request({ host: '127.0.0.1', port: store.port, method, path: url, headers }, (found) => {
        answer.writeHead(found.statusCode ?? 500, found.headers);
        found.pipe(answer);
      });
      onward.once('error', () => answer.destroy());
      incoming.pipe(onward);
    });
    await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
    return new ObjectStore(store, front, authority.ca);
  }

  /** As in the spec of a Bucket. */
  get endpoint(): string {
    return `127.0.0.1:${(this.front.address() as AddressInfo).port}`;
  }

  /** Uploads these files, and says which revision Flux makes of the objects with a prefix. */
  async upload(bucket: string, prefix: string, files: Files): Promise<string> {
    for (const [path, text] of Object.entries(files)) {
      const answer = await this.store.send('PUT', `/${bucket}/${prefix}${path}`, Buffer.from(text));
      this.etags.set(`${prefix}${path}`, (answer.headers.get('etag') ?? '').replaceAll('"', ''));
    }
    const keys = [...this.etags.keys()].filter((key) => key.startsWith(prefix)).sort();
    const lines = keys.map((key) => `${key} ${this.etags.get(key)}\n`);
    return `sha256:${createHash('sha256').update(lines.join('')).digest('hex')}`;
  }

  async stop(): Promise<void> {
    this.front.closeAllConnections();
    await new Promise((resolve) => this.front.close(resolve));
    await this.store.stop();
  }
}
