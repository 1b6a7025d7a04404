import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LeanCluster } from '#libs/api-servers';
import { connectFleet, type FleetClient } from '#libs/client';
import { until } from '#libs/testing';
import { Reader } from './document.js';

const ROOT = join(__dirname, '../..');
/** What runs until it is stopped: a reader uses another terminal for what comes next. */
const RUNS_ON = /^sluice (up|applier) /;

/** Of `sluice up`, the reader waits until it is ready. */
const NO_STEP = { isBackground: true, shown: '', from: 0, to: 0 };

/** A page whose commands a test runs. */
export class Guide {
  private readonly page: string;

  constructor(name: string) {
    this.page = readFileSync(join(ROOT, name), 'utf8');
  }

  /** The sh blocks, in order, without their indentation. Those with an output are compared by another test. */
  get blocks(): readonly string[] {
    return fenced(this.page, 'sh');
  }

  /** The content of a file that the page shows: a yaml block that begins with its name as a comment. */
  file(name: string): string {
    const found = fenced(this.page, 'yaml').find((text) => text.startsWith(`# ${name}\n`));
    if (found === undefined) throw new Error(`the page shows no file ${name}`);
    return found;
  }
}

function fenced(page: string, language: string): readonly string[] {
  return [...page.matchAll(/^( *)```(\w+)\n([\s\S]*?)^ *```$/gm)]
    .filter(([, , found]) => found === language)
    .map(([, indent = '', , text = '']) => text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''));
}

/** A reader who has a clone of the repository. */
export class GuideReader extends Reader {
  private client: FleetClient | undefined;

  override async settle(programs: Readonly<Record<string, string>>): Promise<void> {
    await super.settle(programs);
    for (const folder of ['examples', 'deploy']) symlinkSync(join(ROOT, folder), join(this.home, folder));
  }

  /** Runs a block, and returns its output. Throws if a command fails. */
  async runBlock(block: string): Promise<string> {
    let output = '';
    for (const part of partsOf(block)) {
      if (part.startsWith('sluice up ')) await this.run({ ...NO_STEP, command: part });
      else if (RUNS_ON.test(part)) this.start(part);
      else output += await this.sh(part);
    }
    return output;
  }

  /** Waits until these nodes are ready. */
  async areReady(...names: readonly string[]): Promise<void> {
    this.client ??= await connectFleet({ servers: [this.url] });
    const { client } = this;
    await until(async () => {
      const nodes = await client.list('nodes').catch(() => undefined);
      return names.every((name) => nodes?.get(name)?.state === 'ready');
    }, `${names.join()} are ready`);
  }

  override async leave(): Promise<void> {
    await this.client?.close();
    await super.leave();
  }
}

/** A line that runs on is a part of its own. */
function partsOf(block: string): readonly string[] {
  const parts: string[] = [];
  let isNew = true;
  for (const line of block.trimEnd().split('\n')) {
    if (isNew || RUNS_ON.test(line)) parts.push(line);
    else parts.push(`${parts.pop()}\n${line}`);
    isNew = RUNS_ON.test(line);
  }
  return parts;
}

/** The kubeconfig of an administrator, as kind and the installation of a hub leave it. */
export function writeKubeconfig(reader: Reader, clusters: ReadonlyMap<string, LeanCluster>, current: string): void {
  const all = [...clusters].map(([name, { access }]) => ({
    name,
    cluster: { server: access.server, 'certificate-authority-data': Buffer.from(access.ca).toString('base64') },
    user: { token: access.token },
    context: { cluster: name, user: name },
  }));
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': current,
    clusters: all.map(({ name, cluster }) => ({ name, cluster })),
    users: all.map(({ name, user }) => ({ name, user })),
    contexts: all.map(({ name, context }) => ({ name, context })),
  };
  mkdirSync(join(reader.home, '.kube'));
  writeFileSync(join(reader.home, '.kube', 'config'), JSON.stringify(config), { mode: 0o600 });
}
