import type { Json, Original } from '../../../core/index.js';
import { isActive, isEnabled, isRunning, type Systemd, unitKey } from '../../host/systemd.js';

/**
 * The state of a unit before Sluice: whether it ran and whether it was enabled. It is saved twice, because originals
 * are restored in reverse order of their keys. `unit:` comes before the unit's files (`path:`) and stops what did not
 * run. `enabled:` comes after them and starts again what did.
 */
interface UnitOriginal {
  readonly load: string;
  readonly active: boolean;
  /** It was about to run. Whether it would have run is unknown. */
  readonly starting?: true;
  readonly enabled: boolean;
}

const ENABLED = 'enabled:';
const BACK_MS = 60_000;

export const stateKeys = (unit: string): readonly string[] => [unitKey(unit), `${ENABLED}${unit}`];
export const isStateKey = (key: string): boolean => key.startsWith(ENABLED) || key.startsWith(unitKey(''));
const unitOfKey = (key: string): string => key.slice(key.indexOf(':') + 1);

export class UnitOriginals {
  constructor(
    private readonly kind: string,
    private readonly systemd: Systemd,
  ) {}

  async read(key: string, leftMs: number): Promise<Original> {
    const now = await this.systemd.show(unitOfKey(key), leftMs);
    const active = isRunning(now);
    const starting = !active && isActive(now) ? { starting: true as const } : {};
    const was: UnitOriginal = { load: now.load, active, ...starting, enabled: isEnabled(now) };
    return { kind: this.kind, was: { ...was }, made: [] };
  }

  async restore(key: string, original: Original): Promise<void> {
    const was = original.was as unknown as UnitOriginal;
    const unit = unitOfKey(key);
    const now = await this.systemd.show(unit);
    if (!key.startsWith(ENABLED)) {
      if (!was.enabled && isEnabled(now)) await this.systemd.tell('disable', unit, BACK_MS);
      if (isAtRest(was) && isActive(now)) await this.systemd.tell('stop', unit, BACK_MS);
      return;
    }
    if (now.isOutdated) await this.systemd.daemonReload(BACK_MS);
    if (was.enabled && !isEnabled(now)) await this.systemd.tell('enable', unit, BACK_MS);
    if (isAtRest(was) || isActive(now)) return;
    const start = this.systemd.tell('start', unit, BACK_MS);
    // One that was about to run may have failed each time before, too.
    await (was.active ? start : start.catch(() => undefined));
  }

  async differs(key: string, json: Json): Promise<string | undefined> {
    const was = json as unknown as UnitOriginal;
    const now = await this.systemd.show(unitOfKey(key));
    if (!key.startsWith(ENABLED)) {
      if (isAtRest(was) && isActive(now)) return 'is running, but was not before';
      return !was.enabled && isEnabled(now) ? 'is enabled, but was not before' : undefined;
    }
    if (was.active && !isActive(now)) return `is ${now.active}, but was running before`;
    return was.enabled && !isEnabled(now) ? 'is not enabled, but was before' : undefined;
  }
}

const isAtRest = ({ active, starting }: UnitOriginal): boolean => !active && starting !== true;
