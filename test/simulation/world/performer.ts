import { EMPTY_CONFIG, EMPTY_HASH, nodeToken, type Config, type ConfigEntry } from '#libs/contracts';
import {
  UNREACHABLE,
  type ProbeResult,
  type Refusal,
  type Step,
  type StepAnswer,
  type StepOf,
} from '../../../services/applier/src/core/index.js';
import type { Disk } from './disk.js';
import type { Machine } from './machine.js';
import type { Participant, Surroundings } from './surroundings.js';

/** What is wrong with the machine for a time. */
export interface Trouble {
  /** Nothing can be written: neither state folder nor files. */
  readonly full: boolean;
  /** Files that nobody can write. */
  readonly readOnly: readonly string[];
  /** How often a probe says the opposite. */
  readonly flapping: number;
}
export const NO_TROUBLE: Trouble = { full: false, readOnly: [], flapping: 0 };
const NO_SPACE: Refusal = { fault: 'node', reason: 'no space left on device' };
const READ_ONLY: Refusal = { fault: 'node', reason: 'read-only file' };

/** What a node's applier works on. */
interface Place extends Participant {
  readonly world: Surroundings;
  readonly disk: Disk;
  readonly machine: Machine;
  readonly trouble: Trouble;
  readonly connected: boolean;
  /** By how much its wall clock is wrong. */
  readonly wallSkewMs: number;
}

/** Carries out a step of a node's applier, at once. */
export function perform(node: Place, step: Step): StepAnswer {
  const { disk, machine, trouble, world } = node;
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
      for (const hash of disk.configs.keys()) if (!step.configs.includes(hash)) disk.configs.delete(hash);
      disk.hang = undefined;
      return undefined;
    case 'check':
      return step.config.fragments.flatMap((entry) => refusesContent(entry) ?? []);
    case 'read-before':
      return trouble.full ? NO_SPACE : disk.files.originals(step.entries, step.known);
    case 'snapshot':
      return {};
    case 'run-probes':
      return step.probes.map((probe) => probed(node, probe));
    case 'apply':
      return refuses(node, String(step.entry.spec['path'])) ?? apply(node, step.entry);
    case 'restore':
      return refuses(node, step.key.slice(5)) ?? restore(node, step);
    case 'compare':
      return disk.files.differences(
        keepsReplaced(node) ? step.items.filter((item) => item.do === 'apply') : step.items,
      );
    case 'act':
      return machine.act(step.action);
    case 'read-unit':
      return machine.readUnit();
    case 'guard':
    case 'settle':
    case 'wait':
      return undefined;
    default:
      return node.connected ? ask(node, step) : UNREACHABLE;
  }
}

function ask(
  { name, disk, trouble, wallSkewMs, world }: Place,
  step: StepOf<'read-status' | 'read-lease' | 'fetch-config' | 'report'>,
): StepAnswer {
  const { bus, clock } = world;
  if (step.do === 'read-status') return bus.view('status', nodeToken(name));
  if (step.do === 'read-lease') return bus.view('leases', nodeToken(name));
  if (step.do === 'report') {
    const at = new Date(clock.nowMs + wallSkewMs).toISOString();
    return world.deliverReport({ ...step.report, at }) ? undefined : UNREACHABLE;
  }
  const text = bus.configText(name, step.hash);
  if (text === undefined) return { fault: 'node', reason: 'no such config' };
  if (trouble.full && step.mustKeep) return noSpace(world);
  if (!trouble.full) disk.configs.set(step.hash, text);
  return parsed(text);
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

function probed({ disk, trouble, world }: Place, probe: ConfigEntry): ProbeResult {
  const { path, matches } = probe.spec['file'] as { path: string; matches: string };
  const flaps = trouble.flapping > 0 && world.chance.happens(trouble.flapping);
  if (flaps) world.fire('flapping-probes');
  const passed = new RegExp(matches).test(disk.files.get(path) ?? '') !== flaps;
  return { name: probe.name, passed, reason: passed ? '' : `${path} does not match` };
}

function apply(node: Place, entry: ConfigEntry): Refusal | undefined {
  if (String(entry.spec['content']).includes(`unlucky:${node.name};`))
    return { fault: 'node', reason: 'this disk does not take it' };
  node.disk.files.apply(entry);
  node.world.onWrite(node);
  return undefined;
}

function restore(node: Place, { key, original }: StepOf<'restore'>): undefined {
  if (!keepsReplaced(node)) node.disk.files.restore(key, original);
}

const keepsReplaced = ({ world }: Place): boolean => world.mutant?.keepsReplaced === true;

/** Some contents no node takes, some no node of one role. */
const refusesContent = (entry: ConfigEntry): Refusal | undefined =>
  entry.kind === 'File' && /garbage|no-(\w+)-but-no-\1/.test(String(entry.spec['content']))
    ? { fault: 'content', reason: 'it does not parse' }
    : undefined;

const parsed = (text: string | undefined): Config | undefined =>
  text === undefined ? undefined : (JSON.parse(text) as Config);
