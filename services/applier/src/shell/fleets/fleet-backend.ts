import type { Config, ConfigEntry, Fragment } from '#libs/contracts';
import { objectRefOf } from '#libs/manifests/lean';
import type { Json, Original } from '../../core/index.js';
import { RefusedError, type Backend } from '../ports.js';
import type { FleetChanges, WantedFragment } from './fleet-changes.js';
import type { FleetCalls } from './fleet-link.js';

export const FLEET_KIND = 'FleetChange';
/** The entry after all others: it publishes what the others have collected. */
const PUBLISH_KIND = 'FleetPublication';
export const FLEET_ORDER: readonly string[] = [FLEET_KIND, PUBLISH_KIND];
const PUBLISH: ConfigEntry = { kind: PUBLISH_KIND, name: 'publish', spec: {} };
const PREFIX = 'fleet:';

/** Every config ends with the publication, also one without a FleetChange: a rollback may have to delete things. */
export const fleetEntries = ({ fragments }: Config): readonly ConfigEntry[] => [...fragments, PUBLISH];

/** The resources of an entry: one per fragment in the other fleet. */
export const fleetResources = (entry: ConfigEntry): readonly string[] =>
  entry.kind === PUBLISH_KIND
    ? [`${PREFIX}publication`]
    : manifestsOf(entry).map(({ kind, name }) => `${PREFIX}${kind}/${name}`);

/** Collects what a FleetChange wants in the other fleet. */
export class FleetBackend implements Backend {
  readonly kind = FLEET_KIND;
  readonly resources = fleetResources;

  constructor(
    private readonly link: FleetCalls,
    private readonly changes: FleetChanges,
  ) {}

  async check(entry: ConfigEntry): Promise<void> {
    const fragments = manifestsOf(entry);
    for (const { kind, name } of fragments) {
      const found = await this.changes.find(`${kind}/${name}`);
      if (found !== undefined && found.source !== this.link.source)
        throw new RefusedError(
          'node',
          `${kind}/${name} belongs to the source ${found.source} in that fleet: delete it there first, or choose another name`,
        );
    }
    const objects = fragments.flatMap((fragment) => objectRefOf(fragment) ?? []);
    if (objects.length === 0) return;
    const known = new Set((await this.link.call((fleet) => fleet.objects())).map(({ sha256 }) => sha256));
    const missing = objects.find(({ sha256 }) => !known.has(sha256));
    if (missing !== undefined)
      throw new RefusedError(
        'node',
        `the object store of that fleet does not have ${missing.object} (${missing.sha256.slice(0, 12)}): run sluice upload there`,
      );
  }

  async original(key: string): Promise<Original> {
    const found = await this.changes.find(idOf(key));
    const was = found?.source === this.link.source ? (found.fragment as unknown as Json) : null;
    return { kind: FLEET_KIND, was, made: [] };
  }

  restore(key: string, { was }: Original): Promise<void> {
    this.changes.want(idOf(key), before(was));
    return Promise.resolve();
  }

  differsFromOriginal(key: string, was: Json): Promise<string | undefined> {
    return this.changes.differs(idOf(key), before(was));
  }

  apply(entry: ConfigEntry): Promise<void> {
    for (const fragment of manifestsOf(entry)) this.changes.want(`${fragment.kind}/${fragment.name}`, fragment);
    return Promise.resolve();
  }

  async differs(entry: ConfigEntry): Promise<string | undefined> {
    for (const fragment of manifestsOf(entry)) {
      const how = await this.changes.differs(`${fragment.kind}/${fragment.name}`, fragment);
      if (how !== undefined) return how;
    }
    return undefined;
  }

  title({ name }: ConfigEntry): string {
    return `${FLEET_KIND}/${name}`;
  }
}

/** Publishes what was collected, and waits until its rollout in the other fleet has ended. */
export class FleetPublication implements Backend {
  readonly kind = PUBLISH_KIND;
  readonly isInternal = true;
  readonly resources = fleetResources;

  constructor(private readonly changes: FleetChanges) {}

  check(): Promise<void> {
    return Promise.resolve();
  }

  original(): Promise<Original> {
    return Promise.resolve({ kind: PUBLISH_KIND, was: null, made: [] });
  }

  restore(): Promise<void> {
    return Promise.resolve();
  }

  differsFromOriginal(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  apply(_entry: ConfigEntry, leftMs: () => number): Promise<void> {
    return this.changes.publish(leftMs);
  }

  /** Each fragment is compared on its own. */
  differs(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  title(): string {
    return 'the publication in that fleet';
  }
}

interface Written {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  readonly spec: Readonly<Record<string, unknown>>;
}

/** The manifests of a FleetChange. Other kinds have none. */
function manifestsOf({ kind, spec }: ConfigEntry): readonly Fragment[] {
  if (kind !== FLEET_KIND) return [];
  return (spec['apply'] as readonly Written[]).map(
    ({ kind: of, metadata, spec: own }) =>
      ({ kind: of, name: metadata.name, labels: metadata.labels ?? {}, spec: own }) as Fragment,
  );
}

const idOf = (key: string): string => key.slice(PREFIX.length);

const before = (was: Json): WantedFragment => (was === null ? undefined : (was as unknown as Fragment));
