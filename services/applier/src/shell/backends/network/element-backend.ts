import type { ConfigEntry } from '#libs/contracts';
import type { Json, Original } from '../../../core/index.js';
import { RefusedError, type Backend } from '../../ports.js';
import type { NetworkTools } from './tools.js';

/** What exists in the place of an element. */
export interface ElementState {
  /** It has Sluice's mark. Sluice changes nothing else. */
  readonly ours: boolean;
  /** How it differs from what it should be. */
  readonly differs: string | undefined;
  /** It has the place, but is another element: one with another order has another key. */
  readonly isOther?: boolean;
}

/**
 * An element of the kernel's network. Sluice creates it and marks it, or does not touch it. So it never existed before
 * Sluice, and a rollback removes it.
 */
export abstract class ElementBackend<S extends object> implements Backend {
  abstract readonly kind: string;

  constructor(protected readonly tools: NetworkTools) {}

  /**
   * The existing element; undefined if there is none. Without `fresh`, it may be from a moment ago, which is much
   * cheaper for many.
   */
  protected abstract stateOf(spec: S, fresh: boolean): Promise<ElementState | undefined>;
  protected abstract make(spec: S): Promise<void>;
  protected abstract remove(spec: S): Promise<void>;

  resources(entry: ConfigEntry): readonly string[] {
    return [entry.name];
  }

  title(entry: ConfigEntry): string {
    return entry.name.slice(entry.name.indexOf(':') + 1);
  }

  async check(entry: ConfigEntry): Promise<void> {
    refuseOddTexts(entry.spec);
    await this.refuseForeign(specOf<S>(entry), this.title(entry), false);
  }

  async original(_key: string, entry: ConfigEntry): Promise<Original> {
    return { kind: this.kind, was: { state: 'absent', spec: entry.spec as Json }, made: [] };
  }

  async restore(_key: string, { was }: Original): Promise<void> {
    const spec = specIn<S>(was);
    if (isMade(await this.stateOf(spec, true))) await this.remove(spec);
  }

  async differsFromOriginal(_key: string, was: Json): Promise<string | undefined> {
    return isMade(await this.stateOf(specIn<S>(was), false)) ? 'exists, but did not exist before Sluice' : undefined;
  }

  async apply(entry: ConfigEntry): Promise<void> {
    const spec = specOf<S>(entry);
    const now = await this.refuseForeign(spec, this.title(entry), true);
    if (now === undefined || now.differs !== undefined) await this.make(spec);
  }

  async differs(entry: ConfigEntry): Promise<string | undefined> {
    const now = await this.stateOf(specOf<S>(entry), false);
    if (now === undefined) return 'missing';
    return now.ours ? now.differs : 'was not created by Sluice';
  }

  private async refuseForeign(spec: S, title: string, fresh: boolean): Promise<ElementState | undefined> {
    const now = await this.stateOf(spec, fresh);
    if (now?.ours === false) throw new RefusedError('node', `${title} already exists, but was not created by Sluice`);
    return now;
  }
}

const isMade = (now: ElementState | undefined): boolean => now !== undefined && now.ours && now.isOther !== true;
const specOf = <S extends object>(entry: ConfigEntry): S => entry.spec as unknown as S;
const specIn = <S extends object>(was: Json): S => (was as unknown as { readonly spec: S }).spec;

/**
 * The texts become words of a command, or lines of a file. A text that would be several words, or an option, is
 * refused.
 */
function refuseOddTexts(value: unknown): void {
  if (typeof value === 'string' && !/^[A-Za-z0-9@_.:/][A-Za-z0-9@_.:/-]*$/.test(value))
    throw new RefusedError('content', `${JSON.stringify(value)} is not a name or an address`);
  if (typeof value === 'object' && value !== null) for (const below of Object.values(value)) refuseOddTexts(below);
}
