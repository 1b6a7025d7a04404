import { lstatSync, readdirSync, readlinkSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import type { StatePlace } from '../../ports.js';
import { identityIn } from './parent.js';
import { segmentsOf } from './rooted-path.js';

/** The limit of the kernel. */
const MOST_LINKS = 40;

/** Where a state folder is. Mounts and links make it reachable through other paths. */
export function statePlaceOf(folder: string): StatePlace {
  const below = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const folders = [folder, ...below.map(({ name }) => join(folder, name))];
  return { folders: new Set(folders.map(identityAt)), links: linksTo(folder) };
}

/** The links on the way to a path, each as the identity of its folder and its name. */
function linksTo(path: string): ReadonlySet<string> {
  const links = new Set<string>();
  const todo = segmentsOf(isAbsolute(path) ? path : join(process.cwd(), path));
  let at = '/';
  for (let part = todo.shift(); part !== undefined && links.size < MOST_LINKS; part = todo.shift()) {
    const next = part === '..' ? dirname(at) : join(at, part);
    const stat = lstatSync(next, { throwIfNoEntry: false });
    // The text of a link in /proc, such as /proc/self/root, does not say where it leads.
    if (stat === undefined) break;
    if (!stat.isSymbolicLink()) {
      at = next;
      continue;
    }
    links.add(`${identityAt(at)}/${part}`);
    const target = readlinkSync(next);
    if (isAbsolute(target)) at = '/';
    todo.unshift(...segmentsOf(target));
  }
  return links;
}

const identityAt = (path: string): string => identityIn(statSync(path, { bigint: true }));
