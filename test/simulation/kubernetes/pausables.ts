import { KEEP_PAUSED_ANNOTATION, PAUSE_ANNOTATION } from '#libs/contracts';
import type { PauseWrite } from '../../../services/drain/src/core/index.js';
import type { Surroundings } from '../world/surroundings.js';

export type Pauser = 'sluice' | 'person';

/** An object with `spec.paused`, such as a MachineConfigPool. */
export interface PausableObject {
  readonly name: string;
  readonly uid: string;
  readonly revision: number;
  readonly paused: boolean;
  /** Who set `paused` last, as the field managers record it. */
  readonly setBy: Pauser | undefined;
  readonly annotations: Readonly<Record<string, string>>;
  /** Its controller updates nodes. */
  readonly updating: boolean;
}

export const PAUSABLES = ['workers', 'others'] as const;

/** The objects of the cluster that drains may pause. */
export class Pausables {
  readonly objects = new Map<string, PausableObject>();
  /** Called when an object was written. */
  onWrite: (before: PausableObject, after: PausableObject, by: Pauser | 'controller') => void = () => undefined;
  private made = 0;

  constructor(private readonly world: Surroundings) {
    for (const name of PAUSABLES) this.register(name);
  }

  register(name: string): void {
    if (this.objects.has(name)) return;
    this.made += 1;
    const [uid, revision] = [`o${this.made}`, this.made];
    this.objects.set(name, { name, uid, revision, paused: false, setBy: undefined, annotations: {}, updating: false });
  }

  remove(name: string): void {
    this.objects.delete(name);
  }

  /** Writes an object. Sluice's write fails if the object changed since it was read. */
  write(
    name: string,
    change: Partial<PauseWrite> & { readonly updating?: boolean },
    by: Pauser | 'controller',
    read?: { readonly uid: string; readonly revision: string },
  ): 'written' | 'overtaken' | 'gone' {
    const before = this.objects.get(name);
    if (before === undefined) return 'gone';
    if (read !== undefined && (read.uid !== before.uid || read.revision !== String(before.revision))) {
      this.world.fire('overtaken-pauses');
      return 'overtaken';
    }
    const annotations = Object.fromEntries(
      Object.entries({ ...before.annotations, ...change.annotations }).filter(
        (entry): entry is [string, string] => entry[1] !== null,
      ),
    );
    const { paused = before.paused, updating = before.updating } = change;
    const setBy = paused === before.paused || by === 'controller' ? before.setBy : by;
    const after = { ...before, paused, setBy, annotations, updating };
    if (JSON.stringify(after) === JSON.stringify(before)) return 'written';
    this.made += 1;
    this.objects.set(name, { ...after, revision: this.made });
    this.world.trace(() => `${by} writes ${name} ${JSON.stringify(change)}`);
    this.onWrite(before, after, by);
    return 'written';
  }

  /** Undoes what people and controllers did. */
  undoInterference(): void {
    for (const name of PAUSABLES) {
      this.register(name);
      this.write(name, { updating: false }, 'controller');
      this.write(name, { annotations: { [KEEP_PAUSED_ANNOTATION]: null } }, 'person');
      const { paused, setBy, annotations } = this.objects.get(name) as PausableObject;
      // What Sluice left paused because a person wanted it kept belongs to that person.
      if (paused && (setBy === 'person' || annotations[PAUSE_ANNOTATION] === undefined))
        this.write(name, { paused: false }, 'person');
    }
  }
}
