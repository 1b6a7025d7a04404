import { createHash } from 'node:crypto';
import { Store } from './store.js';
import { tarball, type Files } from './tarball.js';

const REPOSITORY = 'team/app';
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const CONFIG = 'application/vnd.cncf.flux.config.v1+json';
const CONTENT = 'application/vnd.cncf.flux.content.v1.tar+gzip';

/** A real registry on loopback, which keeps everything in memory. Artifacts are as `flux push artifact` makes them. */
export class OciRegistry {
  private constructor(private readonly store: Store) {}

  static async start(): Promise<OciRegistry> {
    return new OciRegistry(await Store.start('registry', () => ['--port=0'], /serving on port (\d+)/));
  }

  /** Flux speaks plain HTTP to a registry on loopback. */
  get url(): string {
    return `oci://127.0.0.1:${this.store.port}/${REPOSITORY}`;
  }

  /** Pushes an artifact with these files, without a tag. Returns its digest. */
  async push(files: Files): Promise<string> {
    const config = await this.upload(Buffer.from('{}'), CONFIG);
    const layer = await this.upload(tarball(files), CONTENT);
    const manifest = { schemaVersion: 2, mediaType: MANIFEST, config, layers: [layer] };
    const content = Buffer.from(JSON.stringify(manifest));
    const digest = digestOf(content);
    await this.store.send('PUT', `/v2/${REPOSITORY}/manifests/${digest}`, content, { 'content-type': MANIFEST });
    return digest;
  }

  stop(): Promise<void> {
    return this.store.stop();
  }

  private async upload(content: Buffer, mediaType: string): Promise<object> {
    const digest = digestOf(content);
    await this.store.send('POST', `/v2/${REPOSITORY}/blobs/uploads/?digest=${digest}`, content);
    return { mediaType, size: content.length, digest };
  }
}

const digestOf = (content: Buffer): string => `sha256:${createHash('sha256').update(content).digest('hex')}`;
