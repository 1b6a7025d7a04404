import { changeId, nodeToken, takenReport } from '#libs/contracts';
import { Violation, type Oracle, type World } from '../world/world.js';
import { UNIT_FILE, unitStartsWith } from '../world/machine.js';
import { filesOf } from './whole-files.js';

/**
 * I8, I10 and I7: what was accepted has an end, nothing published is unanswered, and every node is up to date.
 */
export function ended(): Oracle {
  const taken = new Map<string, string>();
  const refused = new Set<string>();
  const boots = new Map<string, string>();
  /** Of each node, how often it was restarted under a lease that failed. */
  const inVain = new Map<string, number>();
  return {
    name: 'I7 I8 I10 ended',
    onFact(_world, fact) {
      if (fact.type === 'config.accepted') taken.set(fact.change, 'open');
      if (fact.type === 'node.lease.settled' && fact.because === 'invalid') refused.add(`${fact.node} ${fact.hash}`);
      const report = takenReport(fact);
      if (report !== undefined) {
        const isOther = report.bootId !== '' && report.bootId !== boots.get(report.node);
        if (isOther) boots.set(report.node, report.bootId);
        if (isOther && fact.type === 'node.lease.settled' && fact.because === 'failed')
          inVain.set(fact.node, (inVain.get(fact.node) ?? 0) + 1);
      }
      if (fact.type === 'config.rejected' || fact.type === 'config.committed' || fact.type === 'config.ended') {
        if (taken.get(fact.change) !== undefined && taken.get(fact.change) !== 'open')
          throw new Violation(`${fact.change} ends twice: ${taken.get(fact.change)} and ${fact.type}`);
        taken.set(fact.change, fact.type);
      }
    },
    atEnd(world) {
      for (const { sequence } of world.bus.changes) {
        const change = changeId(sequence);
        if (taken.get(change) === undefined) throw new Violation(`${change} was published and never answered`);
        if (taken.get(change) === 'open' && !isHeld(world, change))
          throw new Violation(
            `${change} has no end: ${JSON.stringify(world.bus.view('rollouts', change))} ${JSON.stringify(world.bus.view('changes', change))}`,
          );
      }
      for (const node of world.nodes.values())
        if (!isOpenFor(world, node.name, taken)) converged(world, node.name, refused, inVain.get(node.name) ?? 0);
    },
  };
}

/** Whether it is held by machines that were switched off for good, and names them; or waits behind one that is. */
function isHeld(world: World, change: string): boolean {
  const { stalledBy = [], phase } = world.bus.view('rollouts', change) ?? {};
  if (stalledBy.length > 0)
    return (
      stalledBy.every((node) => isGone(world, node)) && (phase !== 'reverting' || isLostInRollback(world, stalledBy))
    );
  const waitsFor = world.bus.view('changes', change)?.waitsFor ?? [];
  return waitsFor.length > 0 && waitsFor.every((earlier) => isHeld(world, earlier));
}

/** A dead node holds up no rollback, unless it died while it rolled back itself. */
const isLostInRollback = (world: World, nodes: readonly string[]): boolean =>
  nodes.some((node) => world.bus.view('leases', nodeToken(node))?.kind === 'rollback');

/** Whether a rollout that is held, as was seen above, still decides what the node should have. */
const isOpenFor = (world: World, node: string, taken: ReadonlyMap<string, string>): boolean =>
  taken.get(world.bus.view('status', nodeToken(node))?.change ?? '') === 'open';

const isGone = (world: World, node: string): boolean => world.nodes.get(node)?.scrapped === true;

function converged(world: World, name: string, refused: ReadonlySet<string>, inVain: number): void {
  const node = world.nodes.get(name);
  const status = world.bus.view('status', nodeToken(name));
  // A node that was removed is out of the fleet until it announces itself again.
  if (node === undefined || !node.alive || world.bus.view('nodes', nodeToken(name))?.state === 'gone') return;
  if (status === undefined) throw new Violation(`${name} has no status`);
  if (status.incompatible || status.desired === '') return;
  const lease = world.bus.view('leases', nodeToken(name));
  if (`${status.deferred} ${lease?.reason ?? ''}`.includes('this disk does not take it')) return;
  const files = filesOf(world, node, status.desired);
  // On no machine does the unit start, or the probe pass, with that: what needs a restart for it is tried again and
  // again, and taken back or not heard of in time.
  const serves = unitStartsWith(files.get(UNIT_FILE)) && files.get('/etc/app')?.startsWith('ok') !== false;
  if (lease !== undefined && lease.actions.some(({ kind }) => kind === 'restart' || kind === 'reboot') && !serves)
    return;
  const expected = JSON.stringify([...files].sort());
  const found = JSON.stringify([...node.disk.files].sort());
  if (expected === found || mayDiffer(world, name, refused.has(`${name} ${status.desired}`), inVain)) return;
  throw new Violation(
    `${name} should have ${expected}, and has ${found}: ${JSON.stringify(world.why(name))} ${JSON.stringify(status)} ${JSON.stringify(lease)}`,
  );
}

/**
 * Why a node may not be up to date: it refuses that, it was restarted for it three times in vain, or machines
 * that were switched off for good hold its pool's budget. The answer to "why" says so.
 */
function mayDiffer(world: World, name: string, refused: boolean, inVain: number): boolean {
  const why = world.why(name);
  if (why?.because === 'refused') return refused;
  if (why?.because === 'given-up') return inVain >= 3;
  return why?.because === 'budget' && why.holders.length > 0 && why.holders.every((holder) => isGone(world, holder));
}
