import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ConfigEntry } from '#libs/contracts';
import type { FrrLine, FrrPart } from '#libs/manifests/lean';
import type { Original } from '../../../core/index.js';
import { RefusedError, type Backend } from '../../ports.js';
import { Reserve } from '../../state/reserve.js';
import { readOwn } from '../../state/own-file.js';
import { isMissing, writeWhole } from '../../state/whole-file.js';
import type { NetworkTools } from '../network/tools.js';
import {
  hasPlace,
  keyOf,
  placesOf,
  readBlocks,
  textOf,
  without,
  withLines,
  type Block,
  type Place,
} from './frr-text.js';

export const FRR_RELOAD = '/usr/lib/frr/frr-reload.py';
/** frr-reload.py starts vtysh once for each line that it removes. */
const RELOAD_MS = 60_000;
/** Each run takes some seconds. Two were always enough so far. */
const MOST_RUNS = 4;
const OWN_AS = '@';
/** How much its record may take of the reserve. */
const JOURNAL_BYTES = 32_768;
/** FRR's folder of sockets, and the daemons that have Sluice's lines. */
const SOCKETS = '/var/run/frr';
const DAEMONS = ['zebra', 'bgpd'];

/** The record of Sluice's part: the lines that were added, and the daemons that have them. */
interface FrrOriginal {
  readonly added: readonly Place[];
  readonly life?: string;
}

/**
 * Sluice's part of FRR's configuration. Only missing lines are added. A file in the state folder records them before
 * FRR gets them, so that a rollback removes these and no others.
 */
export class FrrBackend implements Backend {
  readonly kind = 'NetworkFrr';
  private readonly record: string;
  private readonly reserve: Reserve;

  constructor(
    private readonly tools: NetworkTools,
    stateDir: string,
  ) {
    this.record = join(stateDir, 'frr.json');
    this.reserve = new Reserve(stateDir);
  }

  resources(entry: ConfigEntry): readonly string[] {
    return [entry.name];
  }

  title(entry: ConfigEntry): string {
    return entry.name.slice(entry.name.indexOf(':') + 1);
  }

  async check(entry: ConfigEntry): Promise<void> {
    const part = partOf(entry);
    const odd = placesOf(part.lines)
      .flat()
      .find((line) => !/^[\x20-\x7e]+$/.test(line) || line.trim() !== line);
    if (odd !== undefined)
      throw new RefusedError('content', `${JSON.stringify(odd)} is not a line of an FRR configuration`);
    const { desired, others } = await this.planned(part);
    refuseOtherLeaks(desired, others);
    refuseOtherAs(part, others);
    await this.refuseUnreadable(textOf(withLines(others, desired)));
  }

  async original(): Promise<Original> {
    return { kind: this.kind, was: { state: 'absent' }, made: [] };
  }

  async restore(): Promise<void> {
    const added = await this.added();
    const running = await this.running();
    await this.become(running, othersIn(running, added));
    // Lines that FRR kept stay in the record. The next pass removes them, or reports that they still exist.
    await this.keep(removable(await this.running(), added));
  }

  async differsFromOriginal(): Promise<string | undefined> {
    const running = await this.running();
    const left =
      removable(running, await this.added())[0] ?? placesOf(running).find(([line = '']) => SLUICES.test(line));
    return left === undefined
      ? undefined
      : `has ${JSON.stringify(left.join(' / '))}, which did not exist before Sluice`;
  }

  async apply(entry: ConfigEntry): Promise<void> {
    const { running, others, desired, added } = await this.planned(partOf(entry));
    const target = withLines(others, desired);
    const ours = placesOf(desired).filter((place) => !hasPlace(others, place));
    if (textOf(running) === textOf(target)) return this.keep(ours);
    // Until FRR has the new lines, both sets may exist. Afterwards only the added ones do.
    await this.keep([...new Map([...added, ...ours].map((place) => [keyOf(place), place])).values()]);
    await this.become(running, target);
    await this.keep(ours);
  }

  async differs(entry: ConfigEntry): Promise<string | undefined> {
    const { running, desired, added } = await this.planned(partOf(entry));
    const missing = placesOf(desired).find((place) => !hasPlace(running, place));
    if (missing !== undefined) return `lacks ${JSON.stringify(missing.join(' / '))}`;
    const wantedKeys = new Set(placesOf(desired).map(keyOf));
    const stale = added.find((place) => !wantedKeys.has(keyOf(place)) && hasPlace(running, place));
    if (stale !== undefined) return `still has ${JSON.stringify(stale.join(' / '))}`;
    const extra = placesOf(running.filter(({ line }) => SLUICES.test(line))).find(
      (place) => !wantedKeys.has(keyOf(place)),
    );
    return extra === undefined ? undefined : `has ${JSON.stringify(extra.join(' / '))}, which is not in the config`;
  }

  /** When one of its daemons restarts, FRR loads the lines of its own file again. */
  async isForgotten(): Promise<boolean> {
    const { life } = await this.readOriginal();
    return life !== undefined && life !== (await this.life());
  }

  /** What FRR runs, which part of it is not Sluice's, and what it should have in addition. */
  private async planned(part: FrrPart): Promise<{
    running: readonly Block[];
    others: readonly Block[];
    desired: readonly FrrLine[];
    added: readonly Place[];
  }> {
    const [running, added] = await Promise.all([this.running(), this.added()]);
    const others = othersIn(running, added);
    return { running, others, added, desired: part.lines.map((line) => withAs(line, ownAs(others, part))) };
  }

  private async running(): Promise<readonly Block[]> {
    return readBlocks(await this.tools.run([...this.vtysh(), '-c', 'show running-config no-header']));
  }

  private async refuseUnreadable(text: string): Promise<void> {
    await inFile(text, async (path) => {
      const { code, out, error } = await this.tools.try([...this.vtysh(), '--dryrun', '--inputfile', path]);
      const output = `${out}\n${error}`
        .split('\n')
        .filter((line) => /^%|^line \d+/.test(line))
        .slice(0, 3)
        .join('; ');
      if (code !== 0)
        throw new RefusedError(
          'content',
          `FRR rejects its part of the config: ${output === '' ? error.trim().slice(-300) : output}`,
        );
    });
  }

  /**
   * frr-reload.py does not always find everything in one run. If a BGP instance is removed, it misses families of
   * others. It also counts a line that FRR removed itself as a failure. So only the resulting configuration counts.
   */
  private async become(running: readonly Block[], target: readonly Block[]): Promise<void> {
    let now = running;
    let output = '';
    for (let runs = 0; runs < MOST_RUNS; runs++) {
      if (difference(now, target) === undefined) return;
      output = await this.reload(target);
      const before = now;
      now = await this.running();
      if (textOf(now) === textOf(before)) break;
    }
    const left = difference(now, target);
    if (left !== undefined) throw new Error(`FRR ${left}${output === '' ? '' : `: ${output}`}`);
  }

  /**
   * What frr-reload.py printed if it failed. With a file outside its folder of configs, it would write FRR's own file,
   * which Sluice must not do.
   */
  private async reload(target: readonly Block[]): Promise<string> {
    let output = '';
    await inFile(textOf(target), async (path) => {
      const sockets = this.tools.settings.frrSockets;
      const argv = [
        'python3',
        FRR_RELOAD,
        '--reload',
        '--stdout',
        '--confdir',
        dirname(path),
        ...(sockets === undefined ? [] : ['--vty_socket', sockets]),
        path,
      ];
      const { code, out, error } = await this.tools.runLong(argv, RELOAD_MS);
      const lines = `${out}\n${error}`
        .split('\n')
        .filter((line) => line.trim() !== '' && !/ INFO: |^[ [(]|WARNING/.test(line));
      if (code !== 0) output = `frr-reload.py: ${lines.slice(-3).join('; ')}`;
    });
    return output;
  }

  private vtysh(): readonly string[] {
    const { frrSockets } = this.tools.settings;
    return ['vtysh', ...(frrSockets === undefined ? [] : ['--vty_socket', frrSockets])];
  }

  private async added(): Promise<readonly Place[]> {
    return (await this.readOriginal()).added;
  }

  private async readOriginal(): Promise<FrrOriginal> {
    try {
      return JSON.parse(readOwn(this.record)) as FrrOriginal;
    } catch (error) {
      if (isMissing(error)) return { added: [] };
      throw new Error(`${this.record} cannot be read: ${(error as Error).message}`, { cause: error });
    }
  }

  private async keep(added: readonly Place[]): Promise<void> {
    const next: FrrOriginal = { added, life: await this.life() };
    const text = JSON.stringify(next);
    if (JSON.stringify(await this.readOriginal()) === text) return;
    await this.reserve.lend(() => writeWhole(this.record, text), JOURNAL_BYTES);
  }

  /** Each daemon creates its socket when it starts. */
  private async life(): Promise<string> {
    const found = await Promise.all(
      DAEMONS.map((daemon) =>
        stat(join(this.tools.settings.frrSockets ?? SOCKETS, `${daemon}.vty`)).then(
          ({ ino, ctimeMs }) => `${ino} ${ctimeMs}`,
          () => 'none',
        ),
      ),
    );
    return found.join(', ');
  }
}

/** Names that only Sluice uses. */
const SLUICES = /^(ip|ipv6) prefix-list sluice-|^route-map sluice-/;

/** What FRR runs, without the lines that Sluice added or named. */
const othersIn = (running: readonly Block[], added: readonly Place[]): readonly Block[] =>
  without(running, added).filter(({ line }) => !SLUICES.test(line));

/** The first line that is missing, or that should not exist. */
function difference(running: readonly Block[], target: readonly Block[]): string | undefined {
  const missing = placesOf(target).find((place) => !hasPlace(running, place));
  if (missing !== undefined) return `did not accept ${JSON.stringify(missing.join(' / '))}`;
  const extra = placesOf(running).find((place) => !hasPlace(target, place));
  return extra === undefined ? undefined : `did not remove ${JSON.stringify(extra.join(' / '))}`;
}

/** Those of these lines that still exist and can be removed. A block that has lines of others cannot. */
function removable(running: readonly Block[], added: readonly Place[]): readonly Place[] {
  const others = othersIn(running, added);
  return added.filter((place) => hasPlace(running, place) && !hasPlace(others, place));
}

const partOf = (entry: ConfigEntry): FrrPart => entry.spec as unknown as FrrPart;

/** The AS of the node's own BGP. Throws Refused if neither FRR nor the config sets one. */
function ownAs(others: readonly Block[], { ownAs: configured, lines }: FrrPart): string {
  const running = others.map(({ line }) => /^router bgp (\d+)$/.exec(line)?.[1]).find((as) => as !== undefined);
  if (running !== undefined || configured !== undefined) return running ?? String(configured);
  if (!lines.some(({ line }) => line.startsWith(`router bgp ${OWN_AS}`))) return OWN_AS;
  throw new RefusedError('node', 'FRR runs no BGP on this node, and localAs is not set');
}

const withAs = (line: FrrLine, as: string): FrrLine => ({
  ...line,
  line: line.line.replace(`router bgp ${OWN_AS}`, `router bgp ${as}`),
});

const asOf = (line: string): string | undefined => /^router bgp (\d+)/.exec(line)?.[1];

/**
 * Routes can be imported between instances of one AS only. FRR itself starts instances that are named in an import, in
 * the AS of the importing one.
 */
function refuseOtherAs({ ownAs: configured }: FrrPart, others: readonly Block[]): void {
  const running = others.map(({ line }) => asOf(line)).find((as) => as !== undefined);
  if (configured === undefined || running === undefined || running === String(configured)) return;
  throw new RefusedError('node', `FRR runs BGP in AS ${running} on this node, but localAs is ${configured}`);
}

/** An instance filters its imports through one map only. A map of another owner stays. */
function refuseOtherLeaks(desired: readonly FrrLine[], others: readonly Block[]): void {
  const leaks = (lines: readonly (Block | FrrLine)[]): readonly Place[] =>
    placesOf(lines).filter((place) => place.at(-1)?.startsWith('import vrf route-map ') === true);
  for (const place of leaks(desired)) {
    const other = leaks(others).find(
      (found) => keyOf(found.slice(0, -1)) === keyOf(place.slice(0, -1)) && found.at(-1) !== place.at(-1),
    );
    if (other !== undefined)
      throw new RefusedError(
        'node',
        `${other.slice(0, -1).join(' / ')} already has "${other.at(-1) ?? ''}", and can have only one`,
      );
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
