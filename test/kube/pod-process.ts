import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Guard } from '#libs/process';
import type { KubeCluster } from '#libs/testing';
import { podOf, ROOT, type RenderedChart } from '../deploy/chart.js';

const SCRIPT = join(ROOT, 'test/kube/as-pod.sh');

/** Why this machine cannot run a program like a pod. Undefined if it can. */
export function whyNoPods(): string | undefined {
  const { status, stderr } = spawnSync(SCRIPT, ['check'], { encoding: 'utf8' });
  return status === 0
    ? undefined
    : `there are no mount namespaces here: ${(stderr ?? '').trim().split('\n').at(-1) ?? ''}`;
}

/** Replaces what a kubelet knows. */
export interface PodPlace {
  /** The folder for its log, its secrets, and the volumes that are mounted into it. */
  readonly folder: string;
  readonly node: string;
  readonly token: string;
  readonly cluster: KubeCluster;
  /** Replaces the entry point of the image. */
  readonly entry: readonly string[];
}

/**
 * The process of a pod's only container, with the user, the capabilities, the environment and the mounts in its
 * template.
 */
export class PodProcess {
  private readonly guard = new Guard();
  private child: ChildProcess | undefined;

  constructor(
    private readonly workload: RenderedChart,
    private readonly place: PodPlace,
  ) {}

  start(): this {
    const { entry } = this.place;
    const pod = podOf(this.workload);
    const [container] = pod.containers;
    if (container === undefined) throw new Error('a pod without a container');
    const { drop, add = [] } = container.securityContext.capabilities;
    const capabilities = [
      ...drop.map((name) => `-${name.toLowerCase()}`),
      ...add.map((name) => `+${name.toLowerCase()}`),
    ].join(',');
    const user = String(
      ({ ...pod.securityContext, ...container.securityContext } as { readonly runAsUser?: number }).runAsUser,
    );
    const mounts = this.mounts();
    const log = openSync(this.log, 'a');
    const args = [
      'run',
      this.secrets(),
      user,
      capabilities,
      mounts.map(([from, to]) => `${from}=${to}`).join(','),
      '--',
      process.execPath,
      ...entry,
      ...(container.args ?? []),
    ];
    this.child = spawn(SCRIPT, args, { cwd: ROOT, env: this.env(), stdio: ['ignore', log, log], detached: true });
    closeSync(log);
    this.guard.watch([this.child.pid as number]);
    return this;
  }

  get output(): string {
    return existsSync(this.log) ? readFileSync(this.log, 'utf8') : '';
  }

  async stop(): Promise<void> {
    const { child } = this;
    if (child !== undefined && child.exitCode === null && child.signalCode === null) {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await ended;
    }
    this.guard.close();
  }

  /** The folder that replaces the root of the node. */
  get node(): string {
    return join(this.place.folder, 'node');
  }

  private get log(): string {
    return join(this.place.folder, 'pod.log');
  }

  /** The container's /host is another folder here, because it cannot be created in the root folder. */
  private hosted(path: string): string {
    return path.replace(/^\/host(?=\/|$)/, join(this.place.folder, 'host'));
  }

  private mounts(): readonly (readonly [string, string])[] {
    const pod = podOf(this.workload);
    const paths = new Map((pod.volumes ?? []).map(({ name, hostPath }) => [name, hostPath?.path]));
    return (pod.containers[0]?.volumeMounts ?? []).flatMap(({ name, mountPath }) => {
      const path = paths.get(name);
      if (path === undefined) return [];
      const pair = [join(this.node, path), this.hosted(mountPath)] as const;
      for (const one of pair) mkdirSync(one, { recursive: true });
      return [pair];
    });
  }

  private secrets(): string {
    const folder = join(this.place.folder, 'secrets');
    mkdirSync(folder, { recursive: true });
    const { token, cluster } = this.place;
    for (const [name, text] of Object.entries({ token, 'ca.crt': cluster.access.ca, namespace: 'sluice' }))
      writeFileSync(join(folder, name), text);
    return folder;
  }

  private env(): Record<string, string> {
    const { cluster, node } = this.place;
    const fields: Readonly<Record<string, string>> = {
      'metadata.namespace': 'sluice',
      'metadata.name': `${this.workload.metadata.name}-0`,
      'spec.nodeName': node,
    };
    const env: Record<string, string> = {
      PATH: process.env['PATH'] ?? '',
      HOME: '/home/node',
      KUBERNETES_SERVICE_HOST: '127.0.0.1',
      KUBERNETES_SERVICE_PORT: String(cluster.port),
    };
    for (const { name, value, valueFrom } of podOf(this.workload).containers[0]?.env ?? []) {
      const text = value ?? fields[valueFrom?.fieldRef?.fieldPath ?? ''] ?? '';
      env[name] = this.hosted(text.replaceAll(/\$\((\w+)\)/g, (_whole, key: string) => env[key] ?? ''));
    }
    return env;
  }
}
