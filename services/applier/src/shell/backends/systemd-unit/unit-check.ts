import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import type { ConfigEntry } from '#libs/contracts';
import { either, runCommand } from '../../command.js';
import { RefusedError, type CheckContext, type Surroundings } from '../../ports.js';
import { fileAt } from '../paths/path-state.js';
import { unitFiles, unitPlaces, type UnitEntry } from './unit-files.js';

const VERIFY_MS = 15_000;
/**
 * A program may be part of the same change, or be missing on this machine only. Starting the unit shows whether it
 * works.
 */
const NOT_OF_THE_CONTENT =
  /is not executable: No such file|Failed to create|Failed to prepare filename|Unit \S+ not found/;

/**
 * Throws Refused('content') if systemd itself would reject the unit. Checks copies, and changes nothing on the node.
 */
export async function verifyUnit(
  entry: ConfigEntry,
  unit: UnitEntry,
  { host, root, ending }: Surroundings,
  checked: Pick<CheckContext, 'leftMs' | 'ending'>,
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
      {
        root: folder,
        timeoutMs: Math.min(VERIFY_MS, checked.leftMs()),
        ending: either(ending, checked.ending),
      },
    );
    const messages = output
      .split('\n')
      .map((line) => line.replaceAll(`${folder}/`, '').trim())
      .filter((line) => line.includes(unit.name) && !NOT_OF_THE_CONTENT.test(line));
    if (!passed && messages.length > 0)
      throw new RefusedError('content', `systemd rejects it: ${messages.slice(0, 5).join('; ')}`);
    // Without a message about the unit, the program itself could not work.
    if (!passed && output.trim() === '') throw new Error(reason);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The current content of a unit to which the entry only adds. */
async function presentContent(name: string, root: string): Promise<string | undefined> {
  for (const path of unitPlaces(name)) {
    const { content } = await fileAt(root, path, { wants: () => true });
    if (content !== undefined) return content.toString('utf8');
  }
  return undefined;
}
