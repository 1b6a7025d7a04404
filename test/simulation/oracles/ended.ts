import { changeId, EMPTY_HASH, nodeToken, takenReport, type ConfigEntry, type FactType } from '#libs/contracts';
import { Violation, type Oracle, type World } from '../world/world.js';
import { UNLUCKY } from '../world/commands.js';
import { UNIT_FILE, unitStartsWith } from '../world/machine.js';
import type { SimNode } from '../world/sim-node.js';
import { passesOn, probesOf } from './probes.js';
import { filesOf } from './whole-files.js';

const ENDS: ReadonlySet<FactType> = new Set<FactType>([
  'config.rejected',
  'config.deduplicated',
  'config.committed',
  'config.ended',
]);

/** I8, I10 and I7: every accepted change ends, every published change is answered, and every node is up to date. */
export function ended(): Oracle {
  const phases = new Map<string, string>();
  const refused = new Set<string>();
  const boots = new Map<string, string>();
  /** For each node, how many times it was restarted under a lease that failed. */
  const inVain = new Map<string, number>();
  return {
    name: 'I7 I8 I10 ended',
    onFact(_world, fact) {
      if (fact.type === 'config.accepted') phases.set(fact.change, 'open');
      if (fact.type === 'node.lease.settled' && fact.because === 'invalid') refused.add(`${fact.node} ${fact.hash}`);
      const report = takenReport(fact);
      if (report !== undefined) {
        const isOther = report.bootId !== '' && report.bootId !== boots.get(report.node);
        if (isOther) boots.set(report.node, report.bootId);
        if (isOther && fact.type === 'node.lease.settled' && fact.because === 'failed')
          inVain.set(fact.node, (inVain.get(fact.node) ?? 0) + 1);
      }
      if (ENDS.has(fact.type) && 'change' in fact) {
        if (phases.get(fact.change) !== undefined && phases.get(fact.change) !== 'open')
          throw new Violation(`${fact.change} ends twice: ${phases.get(fact.change)} and ${fact.type}`);
        phases.set(fact.change, fact.type);
      }
    },
    atEnd(world) {
      const held = new Map<string, boolean>();
      for (const { sequence } of world.bus.changes) {
        const change = changeId(sequence);
        if (phases.get(change) === undefined) throw new Violation(`${change} was published and never answered`);
        if (phases.get(change) === 'open' && !isHeld(world, change, held))
          throw new Violation(
            `${change} has no end: ${JSON.stringify(world.bus.view('rollouts', change))} ${JSON.stringify(world.bus.view('changes', change))}`,
          );
      }
      for (const node of world.nodes.values())
        if (!isOpenFor(world, node.name, phases)) converged(world, node.name, refused, inVain.get(node.name) ?? 0);
    },
  };
}

/**
 * Whether the change is held up by machines that were switched off for good, and names them; or waits for a change that
 * is. Each change is checked once, because many changes may wait for the same ones.
 */
function isHeld(world: World, change: string, held: Map<string, boolean>): boolean {
  const known = held.get(change);
  if (known !== undefined) return known;
  const { stalledBy = [], phase } = world.bus.view('rollouts', change) ?? {};
  const { waitsFor = [], needs = [] } = world.bus.view('changes', change) ?? {};
  const isStalled = stalledBy.length > 0;
  const answer = isStalled
    ? stalledBy.every((node) => isGone(world, node)) && (phase !== 'reverting' || isLostInRollback(world, stalledBy))
    : // Whether these are really missing is checked by another oracle.
      needs.length > 0 || (waitsFor.length > 0 && waitsFor.every((earlier) => isHeld(world, earlier, held)));
  held.set(change, answer);
  return answer;
}

/** A dead node does not hold up a rollback, unless it died during its own rollback. */
const isLostInRollback = (world: World, nodes: readonly string[]): boolean =>
  nodes.some((node) => world.bus.view('leases', nodeToken(node))?.kind === 'rollback');

/** Whether a held rollout, as defined above, still decides which config the node should have. */
const isOpenFor = (world: World, node: string, phases: ReadonlyMap<string, string>): boolean =>
  phases.get(world.bus.view('status', nodeToken(node))?.change ?? '') === 'open';

const isGone = (world: World, node: string): boolean => world.nodes.get(node)?.scrapped === true;

function converged(world: World, name: string, refused: ReadonlySet<string>, inVain: number): void {
  const node = world.nodes.get(name);
  const status = world.bus.view('status', nodeToken(name));
  // A node that was removed is not part of the fleet until it announces itself again.
  if (node === undefined || !node.alive || world.bus.view('nodes', nodeToken(name))?.state === 'gone') return;
  if (status === undefined) throw new Violation(`${name} has no status`);
  if (status.incompatible || status.desired === '') return;
  const lease = world.bus.view('leases', nodeToken(name));
  const because = `${status.deferred} ${lease?.reason ?? ''}`;
  if (because.includes('this disk does not take it') || because.includes(UNLUCKY)) return;
  // The action may have become one that the node cannot take, after the change was reviewed for it.
  if (!node.canReboot && lease?.actions.some(({ kind }) => kind === 'reboot') === true) return;
  if (hasLostConfig(world, node)) return;
  const files = filesOf(world, node, status.desired);
  // With that content, the unit starts, or the probe passes, on no machine. A change that needs it restarted is retried
  // again and again, and is rolled back or times out.
  const serves = unitStartsWith(files.get(UNIT_FILE)) && files.get('/etc/app')?.startsWith('ok') !== false;
  if (lease !== undefined && lease.actions.some(({ kind }) => kind === 'restart' || kind === 'reboot') && !serves)
    return;
  const expected = JSON.stringify([...files].sort());
  const found = JSON.stringify([...node.disk.files].sort());
  if (expected === found || !mayPass(world, node, status.desired, files)) return;
  if (mayDiffer(world, name, refused.has(`${name} ${status.desired}`), inVain)) return;
  throw new Violation(
    `${name} should have ${expected}, and has ${found}: ${JSON.stringify(world.why(name))} ${JSON.stringify(status)} ${JSON.stringify(lease)}`,
  );
}

/** A known gap: the config in force of a target that was removed is deleted, and the next copy does not have it. */
const hasLostConfig = ({ bus }: World, { name, canReboot, journal: { inForce } }: SimNode): boolean =>
  !canReboot && inForce !== EMPTY_HASH && bus.configText(name, inForce) === undefined;

/**
 * A node does not keep a config if a probe fails on its files and is new, or passes on the current files. A change that
 * no node could try may be committed.
 */
function mayPass(world: World, node: SimNode, hash: string, files: ReadonlyMap<string, string>): boolean {
  const known = new Set(probesOf(world, node, node.journal.inForce).map((probe) => JSON.stringify(probe)));
  const mayFail = (probe: ConfigEntry): boolean =>
    known.has(JSON.stringify(probe)) && !passesOn(new Map(node.disk.files), probe);
  return probesOf(world, node, hash).every((probe) => mayFail(probe) || passesOn(files, probe));
}

/**
 * Why a node may not be up to date: it refuses the config, it was restarted for it three times in vain, a strict policy
 * keeps changes from it because it is unhealthy, another node tries its config first, or machines that were switched
 * off for good hold the budget of its pool. The answer to "why" says so.
 */
function mayDiffer(world: World, name: string, refused: boolean, inVain: number): boolean {
  const why = world.why(name);
  if (why?.because === 'refused') return refused;
  if (why?.because === 'given-up') return inVain >= 3;
  // That other node is judged like every node.
  if (why?.because === 'first-try') return why.holders.every((first) => world.why(first)?.because !== 'first-try');
  if (why?.because === 'unhealthy') return why.text.includes('health: strict');
  return why?.because === 'budget' && why.holders.length > 0 && why.holders.every((holder) => isGone(world, holder));
}
