import { spawn, type ChildProcess } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { findKubeBinaries, KubeApi } from '#libs/api-servers';
import { until, whyNoKube } from '#libs/testing';
import { run } from '../e2e/fleet.js';
import { SLUICE } from '../e2e/processes.js';

const CLUSTERS = ['cluster-1', 'cluster-2', 'cluster-3'];
/** Longer than starting API servers takes on a busy machine. */
const START_MS = 240_000;
const EXIT_UNFINISHED = 5;

/** `sluice demo --clusters`, running. */
class Demo {
  output = '';
  readonly ended: Promise<number | null>;
  private readonly child: ChildProcess;

  constructor(env: NodeJS.ProcessEnv = process.env) {
    this.child = spawn(process.execPath, [SLUICE, 'demo', '--clusters'], { env: { ...env, NO_COLOR: '1' } });
    for (const stream of [this.child.stdout, this.child.stderr])
      stream?.on('data', (data: Buffer) => (this.output += data.toString()));
    this.ended = new Promise((resolve) => this.child.on('close', resolve));
  }

  says(text: string): Promise<unknown> {
    return until(
      () => {
        if (this.child.exitCode !== null) throw new Error(`the demo ended before it said ${text}:\n${this.output}`);
        return this.output.includes(text);
      },
      `it says ${text}`,
      START_MS,
    );
  }

  get folder(): string {
    return /\/\S*sluice-demo-\w+/.exec(this.output)?.[0] ?? '';
  }

  /** The command lines of all processes that work in its folder. */
  get processes(): readonly string[] {
    return readdirSync('/proc')
      .filter((pid) => /^\d+$/.test(pid))
      .map((pid) => commandLine(pid))
      .filter((line) => line.includes(this.folder));
  }

  interrupt(): void {
    this.child.kill('SIGINT');
  }
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

/** What happened in a cluster, seen from outside. */
interface History {
  readonly images: string[];
  readonly configMaps: string[];
}

function watchCluster(kubeconfig: string, history: History): () => void {
  const { clusters, users } = JSON.parse(readFileSync(kubeconfig, 'utf8')) as {
    readonly clusters: readonly [{ readonly cluster: Readonly<Record<string, string>> }];
    readonly users: readonly [{ readonly user: { readonly token: string } }];
  };
  const { server = '', 'certificate-authority-data': ca = '' } = clusters[0].cluster;
  const api = new KubeApi({ server, ca: Buffer.from(ca, 'base64').toString(), token: users[0].user.token });
  const stops = [
    api.watch(
      '/apis/apps/v1/namespaces/default/deployments?watch=1',
      (_, { spec }) => {
        const { template } = spec as {
          readonly template: { readonly spec: { readonly containers: readonly [{ readonly image: string }] } };
        };
        const { image } = template.spec.containers[0];
        if (history.images.at(-1) !== image) history.images.push(image);
      },
      () => undefined,
    ),
    api.watch(
      '/api/v1/namespaces/default/configmaps?watch=1&fieldSelector=metadata.name%3Dweb',
      (type, object) => {
        const { data } = object as { readonly data?: { readonly greeting?: string } };
        history.configMaps.push(`${type} ${data?.greeting}`);
      },
      () => undefined,
    ),
  ];
  return () => {
    for (const stop of stops) stop();
    api.close();
  };
}

const why = whyNoKube();
const describeDemo = why === undefined ? describe : describe.skip;

describeDemo(`sluice demo --clusters${why === undefined ? '' : ` (${why})`}`, () => {
  beforeAll(() => findKubeBinaries(), 20 * 60_000);

  test('changes one cluster after the other, rolls one back, repairs one, and leaves nothing behind', async () => {
    const demo = new Demo();
    await demo.says('Starting');
    const { folder } = demo;
    const files = CLUSTERS.map((name) => join(folder, 'clusters', `${name}.kubeconfig`));
    const list = join(folder, 'clusters', 'clusters.yaml');
    await until(() => existsSync(list), 'the kubeconfigs are written', START_MS);
    const histories = CLUSTERS.map((): History => ({ images: [], configMaps: [] }));
    const stops = files.map((file, i) => watchCluster(file, histories[i] as History));
    const code = await demo.ended;
    for (const stop of stops) stop();
    expect([code, demo.output]).toEqual([0, expect.stringContaining('Everything worked as expected.')]);
    // Any of them may be the first that gets the bad module.
    expect(histories.map(({ images }) => images.join()).sort()).toEqual(['web:1', 'web:1', 'web:1,web:2,web:1']);
    expect(histories.map(({ configMaps }) => configMaps)).toEqual([
      ['ADDED hello from cluster-1'],
      ['ADDED', 'DELETED', 'ADDED'].map((type) => `${type} hello from cluster-2`),
      ['ADDED hello from cluster-3'],
    ]);
    expect([existsSync(folder), demo.processes]).toEqual([false, []]);
  });

  test.each(['Starting', '1. A module', '2. A canary'])(
    'Ctrl-C after "%s" ends every process, and removes the folder',
    async (text) => {
      const demo = new Demo();
      await demo.says(text);
      const { folder } = demo;
      await until(() => demo.processes.some((line) => line.includes('kube-apiserver')), 'an API server runs', START_MS);
      expect(existsSync(folder)).toBe(true);
      demo.interrupt();
      expect([await demo.ended, demo.output]).toEqual([EXIT_UNFINISHED, expect.not.stringMatching(/error|unexpected/)]);
      await until(() => demo.processes.length === 0, 'no process is left');
      expect(existsSync(folder)).toBe(false);
    },
  );
});

describe('sluice demo --clusters without API servers', () => {
  let home: string;
  beforeEach(() => (home = mkdtempSync(join(tmpdir(), 'sluice-no-go-'))));
  afterEach(() => rmSync(home, { recursive: true }));

  const envWith = (folder: string): NodeJS.ProcessEnv => {
    const { XDG_CACHE_HOME: _, ...env } = process.env;
    return { ...env, HOME: home, PATH: folder };
  };

  /** Knows its version, and never finishes a build. */
  function fakeGo(version: string): string {
    const bin = join(home, 'bin');
    mkdirSync(bin);
    const script = `#!/bin/sh\n[ "$1" = env ] && echo ${version} && exit 0\ntouch '${home}/builds'\nexec sleep 600\n`;
    writeFileSync(join(bin, 'go'), script);
    chmodSync(join(bin, 'go'), 0o755);
    return [bin, process.env['PATH']].join(delimiter);
  }

  test.each([
    ['without Go', '', 'there is no Go in PATH to build a kube-apiserver with: install Go 1.26 or newer'],
    ['with an old Go', 'go1.22.1', 'Go is 1.22, and a kube-apiserver needs 1.26 or newer to be built: install Go 1.26'],
  ])('%s, it says in one line what is missing and how to get it', async (_, version, reason) => {
    const env = envWith(version === '' ? join(home, 'bin') : fakeGo(version));
    const { code, stdout, stderr } = await run(process.execPath, [SLUICE, 'demo', '--clusters'], { env });
    expect({ code, stdout, stderr }).toEqual({ code: 1, stdout: '', stderr: expect.stringContaining(reason) });
    expect(stderr.trimEnd()).toMatch(/^error: sluice demo --clusters needs real API servers, and .* \(https:.*\)$/);
  });

  test('Ctrl-C during the build ends the build, and leaves nothing of it in the cache', async () => {
    const demo = new Demo(envWith(fakeGo('go1.26.1')));
    await demo.says('building kube-apiserver, etcd');
    await until(() => existsSync(join(home, 'builds')), 'Go builds');
    demo.interrupt();
    expect(await demo.ended).toBe(EXIT_UNFINISHED);
    expect(readdirSync(join(home, '.cache/sluice/kube'))).toEqual([]);
  });

  test('it is not shown together with network functions', async () => {
    const { code, stderr } = await run(process.execPath, [SLUICE, 'demo', '--clusters', '--functions'], {});
    expect([code, stderr]).toEqual([2, expect.stringContaining('--functions and --clusters cannot be used together')]);
  });
});
