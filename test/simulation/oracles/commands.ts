import { fragmentId, nodeToken, type ConfigEntry } from '#libs/contracts';
import type { Work } from '../../../services/applier/src/core/index.js';
import { traceOf } from '../world/commands.js';
import type { SimNode } from '../world/sim-node.js';
import { Violation, type Oracle, type World } from '../world/world.js';

/** What a command has left on a machine, and the configs that had this command there. */
interface Trace {
  readonly id: string;
  readonly hashes: string[];
}

/**
 * A command does not run if its check says that it is not needed. A healthy node without work has the effects of the
 * commands of its config. In the end it has no effect of a command of a change that was never committed there, unless
 * it has reported that command as not undone.
 */
export function commands(): Oracle {
  /** By node and trace. */
  const traces = new Map<string, Trace>();
  /** The configs that were committed for a node, or are its own. */
  const wanted = new Set<string>();
  /** The targets of open changes. */
  const targets = new Map<string, readonly string[]>();
  /** The unfinished work of nodes. */
  const works = new Map<string, Work>();
  /** The traces of commands that a node has reported as not undone, or whose command another change has replaced. */
  const settled = new Set<string>();
  return {
    name: 'commands',
    onCommand(_world, node, entry, what) {
      const trace = traceOf(entry);
      if (what === 'undo') return;
      if (node.disk.commands.found.has(trace))
        throw new Violation(`${node.name} runs ${fragmentId(entry)}, which is not needed`);
      const { work, inForce } = node.journal;
      traces.set(`${node.name} ${trace}`, { id: fragmentId(entry), hashes: [work?.to ?? inForce] });
      settled.delete(`${node.name} ${trace}`);
    },
    onFact(world, fact, sequence) {
      switch (fact.type) {
        case 'config.rendered': {
          const all = Object.entries(world.bus.ledger[sequence - 1]?.targets ?? {});
          targets.set(
            fact.change,
            all.map(([node, { to }]) => `${node} ${to}`),
          );
          return;
        }
        case 'config.committed':
          for (const target of targets.get(fact.change) ?? []) wanted.add(target);
          return;
        case 'node.rendered':
          return void wanted.add(`${fact.node} ${fact.hash}`);
      }
    },
    onJournal(world, node, { work, sound, inForce, lastDealt }) {
      const before = works.get(node.name);
      if (work !== undefined) return void works.set(node.name, work);
      works.delete(node.name);
      const isApplied = lastDealt?.verdict === 'applied';
      const ids = new Set(lastDealt?.notUndone?.map((text) => text.split(' ')[0]));
      const kept = new Set(commandsIn(world, node, inForce).map(traceOf));
      for (const found of node.disk.commands.found) {
        const key = `${node.name} ${found}`;
        const isReplaced = isApplied && before?.lease === lastDealt.lease && before.kind === 'forward';
        if (kept.has(found)) traces.get(key)?.hashes.push(inForce);
        if (ids.has(traces.get(key)?.id) || (isReplaced && !kept.has(found))) settled.add(key);
      }
      // A lease that undid commands may fail after that. They do not run again, which counts as drift.
      if (!sound || !isApplied) return;
      for (const trace of kept)
        if (!node.disk.commands.found.has(trace))
          throw new Violation(`${node.name} says ${inForce.slice(0, 12)} is in force, without ${trace}`);
    },
    atEnd(world) {
      for (const node of world.nodes.values()) {
        const { work, sound, inForce } = node.journal;
        if (!node.alive || work !== undefined || !sound) continue;
        if (world.bus.view('nodes', nodeToken(node.name))?.state === 'gone') continue;
        for (const found of node.disk.commands.found) {
          const trace = traces.get(`${node.name} ${found}`);
          if (trace === undefined) throw new Violation(`${node.name} has ${found}, which no command has left`);
          const isWanted = trace.hashes.some((hash) => hash === inForce || wanted.has(`${node.name} ${hash}`));
          if (!isWanted && !settled.has(`${node.name} ${found}`))
            throw new Violation(`${node.name} still has ${found} of ${trace.id}, and nothing says so`);
        }
      }
    },
  };
}

const commandsIn = ({ bus }: World, { name: node }: SimNode, hash: string): readonly ConfigEntry[] =>
  (bus.everConfig({ node, hash })?.fragments ?? []).filter(({ kind }) => kind === 'Exec');
