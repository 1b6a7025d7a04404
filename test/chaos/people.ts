import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FragmentRef } from '#libs/contracts';
import { file, type Manifest } from '../e2e/manifests.js';
import type { NatsCli } from '../e2e/nats-cli.js';
import type { Files } from '../e2e/node-folders.js';
import type { Act, Publication, Scope } from './acts.js';
import type { PublishedChange } from './evidence.js';
import type { Stage } from './stage.js';

const NAMES = (scope: Scope): readonly [string, string] => [scope, `${scope}-twin`];

/** Publishes and steers like people, with `sluice` and `nats`, and remembers what was acknowledged. */
export class People {
  readonly acknowledged = new Map<string, PublishedChange['body']>();
  /** The nodes on which a version fails. */
  private readonly failing = new Map<number, ReadonlySet<string>>();

  constructor(
    private readonly stage: Stage,
    private readonly nats: NatsCli,
  ) {}

  /** Whether the probe of the node fails with these files. */
  readonly isUnhealthy = (node: string, files: Files): boolean =>
    versionsIn(files).some((version) => this.failing.get(version)?.has(node) === true);

  async act(act: Act): Promise<void> {
    if (act.do !== 'publish') return this.steer(act.do);
    this.failing.set(act.version, new Set(act.failingNodes));
    const body = bodyOf(act);
    const change =
      act.via === 'cli' && !act.gone ? await this.byCli(act, body.apply ?? []) : await this.byNats(act, body);
    if (change === undefined) return this.stage.note('not acknowledged');
    this.acknowledged.set(change, body);
    this.stage.note('published');
  }

  /** Resumes everything that was paused. */
  async resumeAll(): Promise<void> {
    const rollouts = [...(await this.stage.fleet.client.list('rollouts')).values()];
    const paused = rollouts.filter((view) => view.paused && view.phase === 'rolling');
    for (const { change } of paused)
      await this.stage.fleet.client.request('ops.rollout.resume', { change, by: 'chaos' }).catch(() => undefined);
  }

  private async byCli(act: Publication, manifests: readonly Manifest[]): Promise<string | undefined> {
    const { fleet } = this.stage;
    const path = join(fleet.data, `v${act.version}.json`);
    writeFileSync(path, manifests.map((manifest) => JSON.stringify(manifest)).join('\n---\n'));
    const { code, stdout } = await fleet.cli('apply', '-f', path, '-m', `v${act.version}`, '-o', 'json');
    return code === 0 ? (JSON.parse(stdout) as { readonly change: string }).change : undefined;
  }

  private async byNats(act: Publication, body: Body): Promise<string | undefined> {
    const text = JSON.stringify({
      ...body,
      message: `v${act.version}`,
      ...(act.maxFailures > 0 ? { strategy: { maxFailures: act.maxFailures } } : {}),
    });
    const { code, stdout, stderr } = await this.nats.run('pub', '--jetstream', 'config.desired.cli', text);
    const sequence = /Sequence: (\d+)/.exec(stderr + stdout)?.[1];
    return code === 0 && sequence !== undefined ? `c${sequence}` : undefined;
  }

  private async steer(verb: 'pause' | 'resume' | 'abort'): Promise<void> {
    const { fleet, note } = this.stage;
    const open = [...(await fleet.client.list('changes').catch(() => new Map<string, never>())).values()].filter(
      ({ phase }) => !['committed', 'rejected', 'ended'].includes(phase),
    );
    const newest = open.map(({ change }) => change).sort((a, b) => Number(b.slice(1)) - Number(a.slice(1)))[0];
    if (newest === undefined) return note('nothing to steer');
    const { code } = await fleet.cli(verb, newest, '--reason', 'chaos');
    note(code === 0 ? `${verb} answered` : `${verb} not answered`);
  }
}

interface Body {
  readonly apply?: readonly Manifest[];
  readonly delete?: readonly FragmentRef[];
}

function bodyOf({ scope, version, gone }: Publication): Body {
  if (gone) return { delete: NAMES(scope).map((name) => ({ kind: 'File', name })) };
  return {
    apply: NAMES(scope).map((name) =>
      file(name, `${name} v${version} on {{ node.name }}\n`, scope === 'all' ? undefined : scope),
    ),
  };
}

const versionsIn = (files: Files): readonly number[] =>
  Object.values(files).flatMap((content) => / v(\d+) on /.exec(content)?.slice(1, 2).map(Number) ?? []);
