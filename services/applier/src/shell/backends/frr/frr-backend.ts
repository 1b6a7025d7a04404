import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ConfigEntry } from '#libs/contracts';
import type { FrrLine, FrrPart } from '#libs/manifests/lean';
import type { Original } from '../../../core/index.js';
import { RefusedError, type Backend } from '../../ports.js';
import { Reserve } from '../../state/reserve.js';
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
/** frr-reload.py starts vtysh once for each line that it takes away. */
const RELOAD_MS = 60_000;
/** Each takes some seconds; two were always enough so far. */
const MOST_RUNS = 4;
const OWN_AS = '@';
/** What its record leaves of the reserve. */
const JOURNAL_BYTES = 32_768;
/** Where FRR has its sockets, and the daemons in which Sluice's lines are. */
const SOCKETS = '/var/run/frr';
const DAEMONS = ['zebra', 'bgpd'];

/** What is kept of Sluice's part: the lines that were added, and the daemons that have them. */
interface FrrOriginal {
  readonly added: readonly Place[];
  readonly life?: string;
}

/**
 * What FRR has of Sluice's. Only lines are added, and only those that were not there: which they are is kept in a file
 * of the state folder, written before FRR is told, so that a rollback takes away these and no others.
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
    const { wanted, others } = await this.planned(part);
    refuseOtherLeaks(wanted, others);
    refuseOtherAs(part, others);
    await this.refuseUnreadable(textOf(withLines(others, wanted)));
  }

  async original(): Promise<Original> {
    return { kind: this.kind, was: { state: 'absent' }, made: [] };
  }

  async restore(): Promise<void> {
    const added = await this.added();
    const running = await this.running();
    await this.become(running, othersIn(running, added));
    // What FRR has kept anyway stays in the record: the next pass takes it away, or says that it is there.
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
    const extra = placesOf(running.filter(({ line }) => SLUICES.test(line))).find(
      (place) => !wantedKeys.has(keyOf(place)),
    );
    return extra === undefined ? undefined : `has ${JSON.stringify(extra.join(' / '))}, which is not in the config`;
  }

  /** FRR has its lines from its own file again when one of its daemons is restarted. */
  async isForgotten(): Promise<boolean> {
    const { life } = await this.kept();
    return life !== undefined && life !== (await this.life());
  }

  /** What FRR runs, what of it is not Sluice's, and what it should have besides. */
  private async planned(part: FrrPart): Promise<{
    running: readonly Block[];
    others: readonly Block[];
    wanted: readonly FrrLine[];
    added: readonly Place[];
  }> {
    const [running, added] = await Promise.all([this.running(), this.added()]);
    const others = othersIn(running, added);
    return { running, others, added, wanted: part.lines.map((line) => withAs(line, ownAs(others, part))) };
  }

  private async running(): Promise<readonly Block[]> {
    return readBlocks(await this.tools.run([...this.vtysh(), '-c', 'show running-config no-header']));
  }

  private async refuseUnreadable(text: string): Promise<void> {
    await inFile(text, async (path) => {
      const { code, out, error } = await this.tools.try([...this.vtysh(), '--dryrun', '--inputfile', path]);
      const said = `${out}\n${error}`
        .split('\n')
        .filter((line) => /^%|^line \d+/.test(line))
        .slice(0, 3)
        .join('; ');
      if (code !== 0)
        throw new RefusedError(
          'content',
          `FRR rejects its part of the config: ${said === '' ? error.trim().slice(-300) : said}`,
        );
    });
  }

  /**
   * frr-reload.py finds what is to be done, but not always in one run: besides an instance of BGP that goes it
   * overlooks families of others, and what FRR has taken away by itself it counts as a failure. What FRR has afterwards
   * is what counts.
   */
  private async become(running: readonly Block[], target: readonly Block[]): Promise<void> {
    let now = running;
    let said = '';
    for (let runs = 0; runs < MOST_RUNS; runs++) {
      if (difference(now, target) === undefined) return;
      said = await this.reload(target);
      const before = now;
      now = await this.running();
      if (textOf(now) === textOf(before)) break;
    }
    const left = difference(now, target);
    if (left !== undefined) throw new Error(`FRR ${left}${said === '' ? '' : `: ${said}`}`);
  }

  /**
   * What frr-reload.py said if it failed. Of a file elsewhere than in its folder of configs it would write FRR's own,
   * which is not Sluice's to write.
   */
  private async reload(target: readonly Block[]): Promise<string> {
    let said = '';
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
      if (code !== 0) said = `frr-reload.py: ${lines.slice(-3).join('; ')}`;
    });
    return said;
  }

  private vtysh(): readonly string[] {
    const { frrSockets } = this.tools.settings;
    return ['vtysh', ...(frrSockets === undefined ? [] : ['--vty_socket', frrSockets])];
  }

  private async added(): Promise<readonly Place[]> {
    return (await this.kept()).added;
  }

  private async kept(): Promise<FrrOriginal> {
    try {
      return JSON.parse(await readFile(this.record, 'utf8')) as FrrOriginal;
    } catch (error) {
      if (isMissing(error)) return { added: [] };
      throw new Error(`${this.record} cannot be read: ${(error as Error).message}`, { cause: error });
    }
  }

  private async keep(added: readonly Place[]): Promise<void> {
    const next: FrrOriginal = { added, life: await this.life() };
    const text = JSON.stringify(next);
    if (JSON.stringify(await this.kept()) === text) return;
    await this.reserve.lend(() => writeWhole(this.record, text), JOURNAL_BYTES);
  }

  /** Each daemon makes its socket when it starts. */
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

/** Names that only Sluice gives. */
const SLUICES = /^(ip|ipv6) prefix-list sluice-|^route-map sluice-/;

/** What FRR runs without what Sluice has added, or has named. */
const othersIn = (running: readonly Block[], added: readonly Place[]): readonly Block[] =>
  without(running, added).filter(({ line }) => !SLUICES.test(line));

/** The first line that is missing, or is there too much. */
function difference(running: readonly Block[], target: readonly Block[]): string | undefined {
  const missing = placesOf(target).find((place) => !hasPlace(running, place));
  if (missing !== undefined) return `did not accept ${JSON.stringify(missing.join(' / '))}`;
  const extra = placesOf(running).find((place) => !hasPlace(target, place));
  return extra === undefined ? undefined : `did not remove ${JSON.stringify(extra.join(' / '))}`;
}

/** Of these, what still exists and can be removed; not a block that has lines of somebody else. */
function removable(running: readonly Block[], added: readonly Place[]): readonly Place[] {
  const others = othersIn(running, added);
  return added.filter((place) => hasPlace(running, place) && !hasPlace(others, place));
}

const partOf = (entry: ConfigEntry): FrrPart => entry.spec as unknown as FrrPart;

/** The AS of the node's own BGP. Throws Refused when neither FRR nor the config says one. */
function ownAs(others: readonly Block[], { ownAs: given, lines }: FrrPart): string {
  const running = others.map(({ line }) => /^router bgp (\d+)$/.exec(line)?.[1]).find((as) => as !== undefined);
  if (running !== undefined || given !== undefined) return running ?? String(given);
  if (!lines.some(({ line }) => line.startsWith(`router bgp ${OWN_AS}`))) return OWN_AS;
  throw new RefusedError('node', 'FRR runs no BGP on this node, and localAs is not set');
}

const withAs = (line: FrrLine, as: string): FrrLine => ({
  ...line,
  line: line.line.replace(`router bgp ${OWN_AS}`, `router bgp ${as}`),
});

const asOf = (line: string): string | undefined => /^router bgp (\d+)/.exec(line)?.[1];

/**
 * Routes go from instance to instance within one AS only: FRR starts those that are named in an import by itself, in
 * the AS of who imports.
 */
function refuseOtherAs({ ownAs: given }: FrrPart, others: readonly Block[]): void {
  const running = others.map(({ line }) => asOf(line)).find((as) => as !== undefined);
  if (given === undefined || running === undefined || running === String(given)) return;
  throw new RefusedError('node', `FRR runs BGP in AS ${running} on this node, but localAs is ${given}`);
}

/** An instance takes what it imports through one map only: that of somebody else is not taken away from them. */
function refuseOtherLeaks(wanted: readonly FrrLine[], others: readonly Block[]): void {
  const leaks = (lines: readonly (Block | FrrLine)[]): readonly Place[] =>
    placesOf(lines).filter((place) => place.at(-1)?.startsWith('import vrf route-map ') === true);
  for (const place of leaks(wanted)) {
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
