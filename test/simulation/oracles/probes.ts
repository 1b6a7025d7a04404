import type { ConfigEntry } from '#libs/contracts';
import { nodeToken } from '#libs/contracts';
import type { SimNode } from '../world/sim-node.js';
import { Violation, type Oracle, type World } from '../world/world.js';

interface StartedWork {
  readonly lease: string;
  readonly from: string;
  readonly readMs: number;
  readonly isRollback: boolean;
  /** The probes of the new config that passed on the previous files. */
  readonly passed: ReadonlySet<string>;
}

/**
 * A confirmed change passes every probe that is new or changed, and every probe that passed before the change, on the
 * files of the machine. In the end, the probes that fail on a machine are those in its status.
 */
export const probes = (): Oracle => {
  const started = new Map<string, StartedWork>();
  return {
    name: 'probes',
    onJournal(world, node, { work, lastDealt, inForce }) {
      const before = started.get(node.name);
      if (work !== undefined) {
        if (before?.lease !== work.lease)
          started.set(node.name, {
            ...work,
            isRollback: work.kind === 'rollback',
            passed: passing(world, node, work.to),
          });
        return;
      }
      started.delete(node.name);
      if (before === undefined || lastDealt?.lease !== before.lease || lastDealt.verdict !== 'applied') return;
      // The results of probes may be wrong for a while.
      if (node.inversion.lastMs >= before.readMs) return;
      const known = new Set(probesOf(world, node, before.from).map((probe) => JSON.stringify(probe)));
      for (const probe of probesOf(world, node, inForce)) {
        const isRequired = before.passed.has(probe.name) || (!before.isRollback && !known.has(JSON.stringify(probe)));
        if (isRequired && !passesOn(node.disk.files, probe))
          throw new Violation(`${node.name} has confirmed ${inForce.slice(0, 12)}, on which ${probe.name} fails`);
      }
    },
    atEnd(world) {
      for (const node of world.nodes.values()) compare(world, node);
    },
  };
};

function compare(world: World, node: SimNode): void {
  const { work, sound, inForce } = node.journal;
  const status = world.bus.view('status', nodeToken(node.name));
  if (!node.alive || work !== undefined || !sound || status === undefined) return;
  if (world.bus.view('nodes', nodeToken(node.name))?.state === 'gone') return;
  const failing = probesOf(world, node, inForce).filter((probe) => !passesOn(node.disk.files, probe));
  const [expected, shown] = [failing.map(({ name }) => name), status.failingProbes.map(({ probe }) => probe)];
  // An action that keeps failing is shown like a probe.
  if (shown[0]?.startsWith('action ') === true && node.machine.readUnit() !== undefined) shown.shift();
  if (expected.join() !== shown.join())
    throw new Violation(`on ${node.name} the probes [${expected.join()}] fail, and its status shows [${shown.join()}]`);
}

const passing = (world: World, node: SimNode, hash: string): ReadonlySet<string> =>
  new Set(
    probesOf(world, node, hash)
      .filter((probe) => passesOn(node.disk.files, probe))
      .map(({ name }) => name),
  );

/** The probes of a config. */
export const probesOf = ({ bus }: World, { name: node }: SimNode, hash: string): readonly ConfigEntry[] =>
  (bus.everConfig({ node, hash })?.fragments ?? []).filter(({ kind }) => kind === 'Probe');

export function passesOn(files: ReadonlyMap<string, string>, { spec }: ConfigEntry): boolean {
  const { path, matches } = spec['file'] as { path: string; matches: string };
  return new RegExp(matches).test(files.get(path) ?? '');
}
