import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import type { ConfigEntry } from '#libs/contracts';
import { runCommand } from '../../command.js';
import { RefusedError, type Surroundings } from '../../ports.js';
import { fileAt } from '../paths/path-state.js';
import { unitFiles, unitPlaces, type UnitEntry } from './unit-files.js';

const VERIFY_MS = 15_000;
/**
 * A program may come with the same change, or be missing on this machine alone: whether it starts is seen when it is
 * started.
 */
const NOT_OF_THE_CONTENT =
  /is not executable: No such file|Failed to create|Failed to prepare filename|Unit \S+ not found/;

/**
 * Throws Refused('content') when systemd itself would not take the unit as it should be. Looks at copies; nothing of
 * the node changes.
 */
export async function verifyUnit(
  entry: ConfigEntry,
  unit: UnitEntry,
  { host, root, ending }: Surroundings,
): Promise<void> {
  const files = unitFiles(entry);
  if (files.length === 0 || host.systemdAnalyze === undefined) return;
  const base = unit.content ?? (await presentContent(unit.name, root));
  if (base === undefined) throw new RefusedError('node', `there is no unit ${unit.name} to add drop-ins to`);
  const folder = await mkdtemp(join(tmpdir(), 'sluice-unit-'));
  try {
    const path = join(folder, unit.name);
    await writeFile(path, base);
    for (const file of files.filter((one) => basename(dirname(one.path)).endsWith('.d'))) {
      const copy = join(folder, basename(dirname(file.path)), basename(file.path));
      await mkdir(dirname(copy), { recursive: true });
      await writeFile(copy, file.content);
    }
    const { passed, output, reason } = await runCommand(
      [host.systemdAnalyze, 'verify', '--man=no', '--recursive-errors=no', path],
      { root: folder, timeoutMs: VERIFY_MS, ending },
    );
    const said = output
      .split('\n')
      .map((line) => line.replaceAll(`${folder}/`, '').trim())
      .filter((line) => line.includes(unit.name) && !NOT_OF_THE_CONTENT.test(line));
    if (!passed && said.length > 0)
      throw new RefusedError('content', `systemd rejects it: ${said.slice(0, 5).join('; ')}`);
    // Without a word on the unit it is the program that could not do its work.
    if (!passed && output.trim() === '') throw new Error(reason);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The present content of a unit that the entry only adds to. */
async function presentContent(name: string, root: string): Promise<string | undefined> {
  for (const path of unitPlaces(name)) {
    const { content } = await fileAt(root, path, { wants: () => true });
    if (content !== undefined) return content.toString('utf8');
  }
  return undefined;
}
