import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ConfigEntry } from '#libs/contracts';
import type { FrrLine, FrrPart } from '#libs/network';
import type { Original } from '../../../core/index.js';
import { Refused, type Backend } from '../../ports.js';
import { isMissing, writeWhole } from '../../state/whole-file.js';
import type { NetworkTools } from '../network/tools.js';
import { hasPlace, keyOf, placesOf, readBlocks, textOf, without, withLines, type Block, type Place } from './frr-text.js';

export const FRR_RELOAD = '/usr/lib/frr/frr-reload.py';
/** frr-reload.py starts vtysh once for each line that it takes away. */
const RELOAD_MS = 60_000;
const OWN_AS = '@';

/**
 * What FRR has of Sluice's. Only lines are added, and only those that were not there: which they are is kept in a file of the
 * state folder, written before FRR is told, so that whoever goes back takes away these and no others.
 */
export class FrrBackend implements Backend {
  readonly kind = 'NetworkFrr';
  private readonly record: string;

  constructor(private readonly tools: NetworkTools, stateDir: string) {
    this.record = join(stateDir, 'frr.json');
  }

  resources(entry: ConfigEntry): readonly string[] {
    return [entry.name];
  }

  title(entry: ConfigEntry): string {
    return entry.name.slice(entry.name.indexOf(':') + 1);
  }

  async check(entry: ConfigEntry): Promise<void> {
    const part = partOf(entry);
    const odd = placesOf(part.lines).flat().find((line) => !/^[\x20-\x7e]+$/.test(line) || line.trim() !== line);
    if (odd !== undefined) throw new Refused('content', `${JSON.stringify(odd)} is no line of FRR's configuration`);
    const { wanted, others } = await this.planned(part);
    refuseOtherLeaks(wanted, others);
    await this.refuseUnreadable(textOf(withLines(others, wanted)));
  }

  async original(): Promise<Original> {
    return { kind: this.kind, was: { state: 'absent' }, made: [] };
  }

  async putBack(): Promise<void> {
    const added = await this.added();
    if (added.length === 0) return;
    const running = await this.running();
    await this.become(running, without(running, added));
    const left = added.filter((place) => hasPlace(without(running, added), place));
    await this.keep(left.length > 0 ? left : []);
  }

  async differsFromOriginal(): Promise<string | undefined> {
    const running = await this.running();
    const left = (await this.added()).filter((place) => hasPlace(running, place));
    const own = left.filter((place) => !hasPlace(without(running, left), place));
    return own.length === 0 ? undefined : `has ${JSON.stringify(own[0]?.at(-1))}, which was not there before Sluice`;
  }

  async apply(entry: ConfigEntry): Promise<void> {
    const { running, others, wanted, added } = await this.planned(partOf(entry));
    const target = withLines(others, wanted);
    const ours = placesOf(wanted).filter((place) => !hasPlace(others, place));
    if (textOf(running) === textOf(target)) return this.keep(ours);
    // Until FRR is told, both may be there; afterwards only what was added.
    await this.keep([...new Map([...added, ...ours].map((place) => [keyOf(place), place])).values()]);
    await this.become(running, target);
    await this.keep(ours);
  }

  async differs(entry: ConfigEntry): Promise<string | undefined> {
    const { running, wanted, added } = await this.planned(partOf(entry));
    const missing = placesOf(wanted).find((place) => !hasPlace(running, place));
    if (missing !== undefined) return `lacks ${JSON.stringify(missing.join(' / '))}`;
    const wantedKeys = new Set(placesOf(wanted).map(keyOf));
    const stale = added.find((place) => !wantedKeys.has(keyOf(place)) && hasPlace(running, place));
    if (stale !== undefined) return `still has ${JSON.stringify(stale.join(' / '))}`;
    const extra = placesOf(running.filter(({ line }) => SLUICES.test(line))).find((place) => !wantedKeys.has(keyOf(place)));
    return extra === undefined ? undefined : `has ${JSON.stringify(extra.join(' / '))}, which is not of the config`;
  }

  /** What FRR runs, what of it is not Sluice's, and what it shall have besides. */
  private async planned(part: FrrPart): Promise<{ running: readonly Block[]; others: readonly Block[]; wanted: readonly FrrLine[]; added: readonly Place[] }> {
    const [running, added] = await Promise.all([this.running(), this.added()]);
    const others = without(running, added).filter(({ line }) => !SLUICES.test(line));
    return { running, others, added, wanted: part.lines.map((line) => withAs(line, ownAs(others, part))) };
  }

  private async running(): Promise<readonly Block[]> {
    return readBlocks(await this.tools.run([...this.vtysh(), '-c', 'show running-config no-header']));
  }

  private async refuseUnreadable(text: string): Promise<void> {
    await inFile(text, async (path) => {
      const { code, out, error } = await this.tools.try([...this.vtysh(), '--dryrun', '--inputfile', path]);
      const said = `${out}\n${error}`.split('\n').filter((line) => /^%|^line \d+/.test(line)).slice(0, 3).join('; ');
      if (code !== 0) throw new Refused('content', `FRR refuses its part of the config: ${said === '' ? error.trim().slice(-300) : said}`);
    });
  }

  private async become(running: readonly Block[], target: readonly Block[]): Promise<void> {
    if (textOf(running) === textOf(target)) return;
    await inFile(textOf(target), async (path) => {
      const sockets = this.tools.settings.frrSockets;
      const argv = ['python3', FRR_RELOAD, '--reload', '--stdout', ...(sockets === undefined ? [] : ['--vty_socket', sockets]), path];
      const { code, out, error } = await this.tools.runLong(argv, RELOAD_MS);
      if (code !== 0) throw new Error(`frr-reload.py: ${`${out}\n${error}`.trim().split('\n').slice(-4).join('; ')}`);
    });
  }

  private vtysh(): readonly string[] {
    const { frrSockets } = this.tools.settings;
    return ['vtysh', ...(frrSockets === undefined ? [] : ['--vty_socket', frrSockets])];
  }

  private async added(): Promise<readonly Place[]> {
    try {
      return (JSON.parse(await readFile(this.record, 'utf8')) as { readonly added: readonly Place[] }).added;
    } catch (error) {
      if (isMissing(error)) return [];
      throw new Error(`${this.record} cannot be read: ${(error as Error).message}`, { cause: error });
    }
  }

  private async keep(added: readonly Place[]): Promise<void> {
    if (JSON.stringify(await this.added()) !== JSON.stringify(added)) await writeWhole(this.record, JSON.stringify({ added }));
  }
}

/** Names that only Sluice gives. */
const SLUICES = /^(ip|ipv6) prefix-list sluice-|^route-map sluice-/;

const partOf = (entry: ConfigEntry): FrrPart => entry.spec as unknown as FrrPart;

/** The AS of the node's own BGP. Throws Refused when neither FRR nor the config says one. */
function ownAs(others: readonly Block[], { ownAs: given, lines }: FrrPart): string {
  const running = others.map(({ line }) => /^router bgp (\d+)$/.exec(line)?.[1]).find((as) => as !== undefined);
  if (running !== undefined || given !== undefined) return running ?? String(given);
  if (!lines.some(({ line }) => line.startsWith(`router bgp ${OWN_AS}`))) return OWN_AS;
  throw new Refused('node', 'FRR runs no BGP of its own here, and no localAs says which AS it is to have');
}

const withAs = (line: FrrLine, as: string): FrrLine => ({ ...line, line: line.line.replace(`router bgp ${OWN_AS}`, `router bgp ${as}`) });

/** An instance takes what it imports through one map only: that of somebody else is not taken away from them. */
function refuseOtherLeaks(wanted: readonly FrrLine[], others: readonly Block[]): void {
  const leaks = (lines: readonly (Block | FrrLine)[]): readonly Place[] => placesOf(lines).filter((place) => place.at(-1)?.startsWith('import vrf route-map ') === true);
  for (const place of leaks(wanted)) {
    const other = leaks(others).find((found) => keyOf(found.slice(0, -1)) === keyOf(place.slice(0, -1)) && found.at(-1) !== place.at(-1));
    if (other !== undefined) throw new Refused('node', `${other.slice(0, -1).join(' / ')} has "${other.at(-1) ?? ''}" already, and can have only one`);
  }
}

async function inFile(text: string, use: (path: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-frr-'));
  try {
    await writeFile(join(folder, 'frr.conf'), text, { mode: 0o600 });
    await use(join(folder, 'frr.conf'));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
