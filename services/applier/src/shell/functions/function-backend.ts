import type { ConfigEntry } from '#libs/contracts';
import { FUNCTION_KINDS, namedIn, functionKindOf, type FunctionKind } from '#libs/manifests/lean';
import type { Json, Original } from '../../core/index.js';
import { RefusedError, type Backend, type CheckContext } from '../ports.js';
import type { FunctionClient } from './function-client.js';
import { FunctionObjects, type ObjectOptions, type Wanted } from './function-objects.js';
import { SERVICE_CAPABILITIES } from './function-services.js';
import { difference, hasCertificates, knownOf, type WireObject } from './wire.js';

/** What a node announces that is a replica of a network function. */
export const FUNCTION_CAPABILITIES: readonly string[] = [
  ...FUNCTION_KINDS.map(({ kind }) => `kind:${kind}`),
  ...SERVICE_CAPABILITIES,
];

/** The backends of one replica of a network function, in the order in which kinds are applied. */
export function functionBackends(client: FunctionClient, options: ObjectOptions = {}): readonly Backend[] {
  const objects = new FunctionObjects(client, options);
  return FUNCTION_KINDS.map((kind) => new FunctionBackend(kind, objects));
}

const PREFIX = 'function:';

/** One kind of object. All kinds have the same backend: the table says what is particular about each. */
class FunctionBackend implements Backend {
  readonly kind: string;

  constructor(
    private readonly row: FunctionKind,
    private readonly objects: FunctionObjects,
  ) {
    this.kind = row.kind;
  }

  /** Kinds that share a collection share its names. */
  resources({ name }: ConfigEntry): readonly string[] {
    return [`${PREFIX}${this.row.path.replace('/v1/', '/')}/${name}`];
  }

  /** A plan has seen every reference. It may be that the replica has lost what a change did not touch. */
  async check(entry: ConfigEntry, { config }: CheckContext): Promise<void> {
    this.objects.wireOf(this.row, entry.name, entry.spec);
    const own = new Set(config.fragments.map(({ kind, name }) => `${kind}/${name}`));
    for (const { field, at, name } of namedIn(this.row.fields, entry.spec)) {
      const kind = functionKindOf(field.refersTo ?? '');
      if (kind === undefined || own.has(`${kind.kind}/${name}`)) continue;
      if ((await this.objects.read(kind, name)).length === 0)
        throw new RefusedError(
          'node',
          `spec.${at}: there is no ${kind.kind}/${name}, neither in the config nor on the network function: apply it first`,
        );
    }
  }

  async original(key: string, entry: ConfigEntry): Promise<Original> {
    const name = nameIn(key);
    const [found] = await this.objects.read(this.row, name);
    if (found === undefined) return { kind: this.kind, was: null, made: [] };
    const wanted = this.objects.wireOf(this.row, entry.name, entry.spec);
    if (!hasCertificates(this.row, found))
      return { kind: this.kind, was: knownOf(this.row, name, found) as Json, made: [] };
    if (difference(this.row, wanted, found) === undefined) return { kind: this.kind, was: wanted as Json, made: [] };
    throw new RefusedError(
      'node',
      'the network function has an object of this name with certificates, which it does not return as they were, so they could not be restored: delete it there first',
    );
  }

  async restore(key: string, { was }: Original): Promise<void> {
    await this.objects.bring(this.before(key, was));
  }

  async differsFromOriginal(key: string, was: Json): Promise<string | undefined> {
    return this.objects.differs(this.before(key, was));
  }

  /** All kinds share the lists. */
  forgetBefore(_entries: readonly ConfigEntry[], sinceMs: number): Promise<void> {
    this.objects.forgetBefore(sinceMs);
    return Promise.resolve();
  }

  async apply(entry: ConfigEntry, leftMs: () => number): Promise<void> {
    await this.objects.bring(this.wanted(entry), leftMs);
  }

  async differs(entry: ConfigEntry): Promise<string | undefined> {
    return this.objects.differs(this.wanted(entry));
  }

  /** A restarted replica has none of the objects that Sluice knows. */
  async isForgotten(): Promise<boolean> {
    for (const kind of COLLECTIONS) {
      if ((await this.objects.list(kind)).length > 0) return false;
    }
    return true;
  }

  title({ kind, name }: ConfigEntry): string {
    return `${kind}/${name}`;
  }

  private wanted({ name, spec }: ConfigEntry): Wanted {
    return { kind: this.row, name, object: this.objects.wireOf(this.row, name, spec) };
  }

  private before(key: string, was: Json): Wanted {
    return { kind: this.row, name: nameIn(key), object: was === null ? undefined : (was as WireObject) };
  }
}

/** One kind of each collection. */
const COLLECTIONS: readonly FunctionKind[] = FUNCTION_KINDS.filter(
  ({ path }, i) => FUNCTION_KINDS.findIndex((other) => other.path === path) === i,
);

const nameIn = (key: string): string => key.slice(key.lastIndexOf('/') + 1);
