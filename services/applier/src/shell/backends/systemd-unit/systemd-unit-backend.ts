import type { ConfigEntry } from '#libs/contracts';
import type { Json, Original, Originals } from '../../../core/index.js';
import { isActive, isEnabled, type Systemd, type UnitState } from '../../host/systemd.js';
import { bytesContent } from '../../content.js';
import {
  RefusedError,
  type Backend,
  type BackendFactory,
  type CheckContext,
  type SaveContext,
  type Surroundings,
} from '../../ports.js';
import { checkPath } from '../paths/path-check.js';
import { PathOriginals } from '../paths/path-originals.js';
import { ensureFile } from '../paths/path-changes.js';
import { fileDiffers } from '../paths/path-differences.js';
import { verifyUnit } from './unit-check.js';
import { unitFiles, unitOf, type UnitEntry } from './unit-files.js';
import { isStateKey, stateKeys, UnitOriginals } from './unit-originals.js';

const ASKED = { mode: 0o644 };

/**
 * `SystemdUnit {name, content, dropIns, enabled, state}`: the files of a unit below /etc/systemd/system, and its state
 * in systemctl. Fields that are left out are not managed.
 */
class SystemdUnitBackend implements Backend {
  readonly kind = 'SystemdUnit';
  private readonly paths: PathOriginals;
  private readonly units: UnitOriginals;

  constructor(
    private readonly surroundings: Surroundings,
    private readonly systemd: Systemd,
  ) {
    this.paths = new PathOriginals(this.kind, surroundings);
    this.units = new UnitOriginals(this.kind, systemd);
  }

  resources(entry: ConfigEntry): readonly string[] {
    return [
      ...stateKeys(this.title(entry)),
      ...unitFiles(entry).map(({ path }) => this.surroundings.aliases.key(path)),
    ];
  }

  title(entry: ConfigEntry): string {
    return String(entry.spec['name']);
  }

  async check(entry: ConfigEntry, checked: CheckContext): Promise<void> {
    const unit = unitOf(entry);
    if (unit.enabled === true && unit.content !== undefined && !/^\s*\[Install\]\s*$/m.test(unit.content))
      throw new RefusedError('content', 'cannot be enabled: it has no section [Install]');
    for (const { path, content } of unitFiles(entry)) {
      const id = `SystemdUnit/${entry.name}`;
      await checkPath(
        this.surroundings,
        { id, path, wrong: 'directory', content: bytesContent(content), desired: ASKED },
        checked,
      );
    }
    const { load } = await this.systemd.show(unit.name, checked.leftMs(), checked.ending);
    if (unit.content === undefined && load === 'not-found')
      throw new RefusedError('node', `there is no unit ${unit.name}`);
    await verifyUnit(entry, unit, this.surroundings, checked);
  }

  original(key: string, _entry: ConfigEntry, saving: SaveContext): Promise<Original> {
    return isStateKey(key) ? this.units.read(key, saving.leftMs()) : this.paths.read(key, saving);
  }

  /** What somebody edited, started, stopped, enabled or disabled. Otherwise the config has all of it. */
  async snapshot(entry: ConfigEntry, leftMs: () => number): Promise<Originals> {
    const unit = unitOf(entry);
    const now = await this.systemd.show(unit.name, leftMs());
    const differences = [
      ...(await Promise.all(unitFiles(entry).map((file) => this.fileDiffers(file)))),
      enabledDiffers(unit, now),
      stateDiffers(unit, now),
    ];
    if (differences.every((how) => how === undefined)) return {};
    const read = (key: string): Promise<Original> =>
      isStateKey(key) ? this.units.read(key, leftMs()) : this.paths.snapshot(key, false, leftMs);
    const originals: Record<string, Original> = {};
    for (const key of this.resources(entry)) originals[key] = await read(key);
    return originals;
  }

  restore(key: string, original: Original): Promise<void> {
    return isStateKey(key) ? this.units.restore(key, original) : this.paths.restore(key, original);
  }

  differsFromOriginal(key: string, was: Json): Promise<string | undefined> {
    return isStateKey(key) ? this.units.differs(key, was) : this.paths.differs(key, was);
  }

  async apply(entry: ConfigEntry, leftMs: () => number): Promise<void> {
    const unit = unitOf(entry);
    const { root } = this.surroundings;
    for (const file of unitFiles(entry)) await ensureFile(root, file.path, bytesContent(file.content), ASKED);
    const now = await this.systemd.show(unit.name, leftMs());
    const [enabling, state] = [enabledDiffers(unit, now), stateDiffers(unit, now)];
    // The new unit must be started or enabled, so reload first. The actions reload only later.
    if (now.isOutdated || now.load === 'not-found') await this.systemd.daemonReload(leftMs());
    if (enabling !== undefined)
      await this.systemd.tell(unit.enabled === true ? 'enable' : 'disable', unit.name, leftMs());
    if (state !== undefined) await this.systemd.tell(unit.state === 'started' ? 'start' : 'stop', unit.name, leftMs());
  }

  async differs(entry: ConfigEntry, leftMs?: () => number, ending?: AbortSignal): Promise<string | undefined> {
    const unit = unitOf(entry);
    for (const file of unitFiles(entry)) {
      const how = await this.fileDiffers(file);
      if (how !== undefined) return `${file.path}: ${how}`;
    }
    const now = await this.systemd.show(unit.name, leftMs?.(), ending);
    return (
      enabledDiffers(unit, now) ??
      stateDiffers(unit, now) ??
      (now.isOutdated ? 'systemd has not reloaded its unit files' : undefined)
    );
  }

  private fileDiffers({ path, content }: ReturnType<typeof unitFiles>[number]): Promise<string | undefined> {
    return fileDiffers(this.surroundings.root, path, bytesContent(content), ASKED);
  }
}

export const systemdUnitBackend: BackendFactory = {
  capabilities: ({ host }) => (host.systemd === undefined ? [] : ['kind:SystemdUnit']),
  create: (surroundings) =>
    surroundings.host.systemd === undefined
      ? undefined
      : new SystemdUnitBackend(surroundings, surroundings.host.systemd),
};

function enabledDiffers({ enabled }: UnitEntry, now: UnitState): string | undefined {
  if (enabled === undefined || enabled === isEnabled(now)) return undefined;
  return enabled ? `is ${now.file === '' ? 'not enabled' : now.file} instead of enabled` : 'is enabled';
}

function stateDiffers({ state }: UnitEntry, now: UnitState): string | undefined {
  if (state === 'stopped') return isActive(now) ? `is ${now.active} instead of stopped` : undefined;
  // A unit that does its work and ends does not run afterwards. For it, only a failure is a difference.
  if (
    state === undefined ||
    isActive(now) ||
    (now.type === 'oneshot' && now.active === 'inactive' && now.result === 'success')
  )
    return undefined;
  return `is ${now.active} instead of started`;
}
