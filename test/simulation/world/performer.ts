import { EMPTY_CONFIG, EMPTY_HASH, nodeToken, type Config, type ConfigEntry } from '#libs/contracts';
import { objectRefOf } from '#libs/manifests';
import {
  entriesWithObject,
  UNREACHABLE,
  type Difference,
  type Item,
  type Outcomes,
  type ProbeResult,
  type Refusal,
  type Step,
  type StepAnswer,
  type StepOf,
} from '../../../services/applier/src/core/index.js';
import { contentOf, NO_ANSWER, notRead, unanswered } from '../../../services/applier/src/testing/memory-node.js';
import type { Disk } from './disk.js';
import type { Machine } from './machine.js';
import type { Participant, Surroundings } from './surroundings.js';

/** Temporary problems of the machine. */
export interface Trouble {
  /** Nothing can be written: neither the state folder nor files. */
  readonly full: boolean;
  /** Files that cannot be written. */
  readonly readOnly: readonly string[];
  /** How often the result of a probe is inverted. */
  readonly flapping: number;
  /** Every probe fails. */
  readonly failing: boolean;
  /** A target elsewhere does not answer its applier. */
  readonly gone: boolean;
  /** Why a target that answers is not ready, as the list of targets says; undefined if it is. */
  readonly unready: string | undefined;
}
/** Why a target cannot be used now; undefined if it can. */
export const unavailableBecause = ({ gone, unready }: Trouble): string | undefined =>
  unready ?? (gone ? NO_ANSWER.reason : undefined);

export const NO_TROUBLE: Trouble = {
  full: false,
  readOnly: [],
  flapping: 0,
  failing: false,
  gone: false,
  unready: undefined,
};
const NO_SPACE: Refusal = { fault: 'node', reason: 'no space left on device' };
const READ_ONLY: Refusal = { fault: 'node', reason: 'read-only file' };

export const NO_OBJECT = 'the object is not on this machine';
/** What an object that was changed in the object store has before its sha256. */
const CHANGED = 'changed ';
/** A node that computes no sha256, and believes the object store. */
export const takenDigest = (content: string): string =>
  content.startsWith(CHANGED) ? content.slice(CHANGED.length) : content;

/** A server that got only so many writes of views. One that is cut off from the others passes nothing on, either. */
export interface LaggingServer {
  readonly at: number;
  readonly isCutOff: boolean;
}

/** What the applier of a node works on. */
interface Place extends Participant {
  readonly world: Surroundings;
  readonly disk: Disk;
  readonly machine: Machine;
  readonly trouble: Trouble;
  /** When the result of a probe was last inverted, by the clock of the machine. */
  readonly inversion: { lastMs: number };
  readonly bootMs: number;
  readonly connected: boolean;
  /** The server that it is connected to; undefined if that has everything. */
  readonly server?: LaggingServer | undefined;
  /** The configs of a target that are kept with its journal. */
  readonly kept?: Map<string, string>;
  /** The error of its wall clock. */
  readonly wallSkewMs: number;
}

/** Carries out a step of a node's applier, immediately. */
export function perform(node: Place, step: Step): StepAnswer {
  const { disk, machine, trouble, world } = node;
  const unheard = trouble.gone ? withoutAnswer(node, step) : undefined;
  if (unheard !== undefined) return unheard;
  switch (step.do) {
    case 'write-journal':
      if (trouble.full) return noSpace(world);
      disk.writeJournal(step.journal);
      world.onJournal(node, step.journal);
      return undefined;
    case 'load-config':
      return step.hash === EMPTY_HASH ? EMPTY_CONFIG : parsed(disk.configs.get(step.hash));
    case 'tidy':
      if (trouble.full) return void noSpace(world);
      for (const configs of [disk.configs, node.kept ?? new Map<string, string>()])
        for (const hash of configs.keys()) if (!step.configs.includes(hash)) configs.delete(hash);
      disk.files.tidy(step.journal);
      disk.hang = undefined;
      return undefined;
    case 'fetch-object':
      return fetchObject(node, step.entry);
    case 'prefetch':
      return prefetch(node, step.hash);
    case 'check':
      return { refusals: step.config.fragments.flatMap((entry) => refusesContent(entry) ?? []), shared: {} };
    case 'read-before':
      return trouble.full ? NO_SPACE : disk.files.originals(step.entries, step.originals);
    case 'snapshot':
      return trouble.full ? NO_SPACE : disk.files.snapshot(step.entries);
    case 'run-probes':
      return probed(node, step.probes);
    case 'apply':
      if (step.entry.kind === 'Exec') return runCommand(node, step.entry);
      return refuses(node, String(step.entry.spec['path'])) ?? apply(node, step.entry);
    case 'restore':
      return refuses(node, step.key.slice(5)) ?? restore(node, step);
    case 'compare':
      return compared(node, step.items);
    case 'act':
      return machine.act(step.action);
    case 'read-unit':
      return machine.readUnit();
    case 'await-ready':
      return [];
    case 'await-others':
      return { what: [], isOver: false };
    case 'check-command':
      return world.mutant?.runsUnneeded === true ? undefined : disk.commands.check(step.entry);
    case 'undo':
      return undoCommand(node, step.entry);
    case 'start-probes':
    case 'start-drift-check':
    case 'reset-failed':
    case 'guard':
    case 'settle':
    case 'wait':
      return undefined;
    default:
      return node.connected ? ask(node, step) : UNREACHABLE;
  }
}

/** What a drift check finds now. */
export const driftOf = (node: Place, { items }: StepOf<'start-drift-check'>): readonly Difference[] =>
  node.trouble.gone ? notRead(items) : compared(node, items);

const compared = (node: Place, items: readonly Item[]): readonly Difference[] => [
  ...node.disk.files.differences(keepsReplaced(node) ? items.filter((item) => item.do === 'apply') : items),
  ...node.disk.commands.differences(items),
];

/** The outcome of a step that needs the target. */
function withoutAnswer({ world }: Place, step: Step): StepAnswer | undefined {
  const outcome = unanswered(step);
  if (outcome === undefined) return undefined;
  world.fire('unreachable-targets');
  if (world.mutant?.blamesUnreachable !== true || step.do !== 'check') return outcome;
  return { refusals: step.entries.map((entry) => ({ ...NO_ANSWER, fault: 'node', entry })), shared: {} };
}

function ask(
  { name, disk, kept, trouble, wallSkewMs, server, world }: Place,
  step: StepOf<'read-status' | 'read-lease' | 'fetch-config' | 'report'>,
): StepAnswer {
  const { bus, clock } = world;
  if (step.do === 'read-status' || step.do === 'read-lease') {
    const bucket = step.do === 'read-status' ? 'status' : 'leases';
    const newest = bus.view(bucket, nodeToken(name));
    const found = server === undefined ? newest : bus.viewAt(bucket, nodeToken(name), server.at);
    if (found !== newest) world.fire('lagging-servers');
    return found;
  }
  if (step.do === 'report') {
    if (server?.isCutOff === true) return UNREACHABLE;
    const at = new Date(clock.nowMs + wallSkewMs).toISOString();
    return world.deliverReport({ ...step.report, at }) ? undefined : UNREACHABLE;
  }
  const text = bus.configText(name, step.hash) ?? kept?.get(step.hash);
  if (text === undefined) return { fault: 'node', reason: 'no such config' };
  if (trouble.full && step.mustKeep) return noSpace(world);
  if (!trouble.full) disk.configs.set(step.hash, text);
  kept?.set(step.hash, text);
  return parsed(text);
}

function fetchObject(node: Place, entry: ConfigEntry): Outcomes['fetch-object'] | typeof UNREACHABLE {
  const { disk, connected, trouble, world } = node;
  const sha256 = contentOf(entry);
  if (isHere(node, entry)) return undefined;
  if (!connected) return UNREACHABLE;
  const found = world.bus.objects.get(sha256);
  if (found !== 'right') world.fire('lost-objects');
  if (found === undefined) return { fault: 'node', reason: 'no such object', mayCome: true };
  const content = found === 'right' ? sha256 : `${CHANGED}${sha256}`;
  if (disk.files.digestOf(content) !== sha256) return { fault: 'node', reason: 'the object was changed' };
  if (trouble.full) return noSpace(world);
  disk.files.contents.set(sha256, content);
  return undefined;
}

function prefetch(node: Place, hash: string): Outcomes['prefetch'] | typeof UNREACHABLE {
  const { name, disk, connected, trouble, world } = node;
  if (!connected) return UNREACHABLE;
  const text = disk.configs.get(hash) ?? world.bus.configText(name, hash);
  if (text === undefined || trouble.full) return { isOver: false };
  disk.configs.set(hash, text);
  for (const entry of entriesWithObject(JSON.parse(text) as Config)) {
    const refusal = fetchObject(node, entry);
    if (refusal === UNREACHABLE) return UNREACHABLE;
    if (refusal !== undefined) return { isOver: refusal.mayCome !== true };
  }
  return { isOver: true };
}

/** Whether everything that it needs is already on the machine. */
function isHere({ disk: { files } }: Place, entry: ConfigEntry): boolean {
  const content = contentOf(entry);
  const isObject = objectRefOf(entry) !== undefined;
  return !isObject || files.contents.has(content) || files.holds(String(entry.spec['path']), content);
}

function noSpace(world: Surroundings): Refusal {
  world.fire('full-disks');
  return NO_SPACE;
}

function refuses({ trouble, world }: Place, path: string): Refusal | undefined {
  if (trouble.full) return NO_SPACE;
  if (!trouble.readOnly.includes(path)) return undefined;
  world.fire('read-only-files');
  return READ_ONLY;
}

/** The current results of probes. */
export const probed = (node: Place, probes: readonly ConfigEntry[]): readonly ProbeResult[] =>
  probes.map((probe) => resultOf(node, probe));

function resultOf(node: Place, probe: ConfigEntry): ProbeResult {
  const { disk, trouble, world } = node;
  if (trouble.gone) return { name: probe.name, passed: false, reason: NO_ANSWER.reason, unreachable: true };
  const { path, matches } = probe.spec['file'] as { path: string; matches: string };
  const isTrue = new RegExp(matches).test(disk.files.get(path) ?? '');
  const flaps = trouble.flapping > 0 && world.chance.flip(trouble.flapping);
  const passed = isTrue !== flaps && !trouble.failing;
  if (flaps) world.fire('flapping-probes');
  if (trouble.failing && isTrue !== flaps) world.fire('failing-probes');
  if (passed !== isTrue) node.inversion.lastMs = node.bootMs;
  if (world.mutant?.passesProbes === true && disk.readJournal().work !== undefined)
    return { name: probe.name, passed: true, reason: '' };
  return { name: probe.name, passed, reason: passed ? '' : `${path} does not match` };
}

function apply(node: Place, entry: ConfigEntry): Refusal | undefined {
  if (String(entry.spec['content']).includes(`unlucky:${node.name};`))
    return { fault: 'node', reason: 'this disk does not take it' };
  if (!isHere(node, entry)) return { fault: 'node', reason: NO_OBJECT };
  node.disk.files.apply(entry);
  node.world.onWrite(node);
  return undefined;
}

function runCommand(node: Place, entry: ConfigEntry): Outcomes['apply'] {
  node.world.onCommand(node, entry, 'apply');
  node.world.fire('commands');
  return node.disk.commands.apply(entry, node.name);
}

function undoCommand(node: Place, entry: ConfigEntry): Refusal | undefined {
  if (node.world.mutant?.keepsCommands === true) return undefined;
  node.world.onCommand(node, entry, 'undo');
  return node.disk.commands.undo(entry);
}

const restore = (node: Place, { key, original }: StepOf<'restore'>): Refusal | undefined =>
  keepsReplaced(node) ? undefined : node.disk.files.restore(key, original);

const keepsReplaced = ({ world }: Place): boolean => world.mutant?.keepsReplaced === true;

/** Some contents are rejected by every node, some by all nodes of one role. */
const refusesContent = (entry: ConfigEntry): Refusal | undefined =>
  entry.kind === 'File' && /garbage|no-(\w+)-but-no-\1/.test(String(entry.spec['content']))
    ? { fault: 'content', reason: 'it does not parse' }
    : undefined;

const parsed = (text: string | undefined): Config | undefined =>
  text === undefined ? undefined : (JSON.parse(text) as Config);
