import { join } from 'node:path';
import { freePort } from '#libs/process';
import { TcpProxy, startNatsServer, type NatsServer } from '#libs/testing';
import type { RunningServer } from '../e2e/fleet.js';

/**
 * A hub that has the streams, and the leaf node of a site to which the nodes of the site connect. The link between them
 * can be cut.
 */
export class LeafSite implements RunningServer {
  private constructor(
    readonly hub: NatsServer,
    readonly leaf: NatsServer,
    private readonly link: TcpProxy,
  ) {}

  static async start(folder: string): Promise<LeafSite> {
    const port = await freePort();
    const hub = await startNatsServer({
      dataDir: join(folder, 'hub'),
      jetStream: { domain: 'hub' },
      config: `leafnodes { listen: "127.0.0.1:${port}" }`,
    });
    const link = await TcpProxy.to(port);
    // Without the domain and its name here, no request for a stream crosses the link: "JetStream is not enabled".
    const remote = `default_js_domain: {"$G": hub}\nleafnodes { reconnect: 1, remotes: [{ urls: ["nats-leaf://127.0.0.1:${link.port}"] }] }`;
    return new LeafSite(
      hub,
      await startNatsServer({ dataDir: join(folder, 'leaf'), config: remote, jetStream: false }),
      link,
    );
  }

  get url(): string {
    return this.hub.url;
  }

  get nodesUrl(): string {
    return this.leaf.url;
  }

  cut(): Promise<void> {
    return this.link.cut();
  }

  restore(): Promise<void> {
    return this.link.restore();
  }

  async stop(): Promise<void> {
    await Promise.all([this.hub.stop(), this.leaf.stop()]);
    await this.link.cut();
  }
}
