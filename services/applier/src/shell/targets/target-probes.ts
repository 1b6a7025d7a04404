import type { ConfigEntry } from '#libs/contracts';
import type { ProbeResult } from '../../core/index.js';
import { RefusedError, type Clock } from '../ports.js';
import { ProbeNetworks } from '../probes/probe-networks.js';
import type { ProbeSurroundings } from '../probes/probe-types.js';
import { checkProbe, runProbes } from '../probes/run-probes.js';
import type { Reach } from './reach.js';

type TargetSurroundings = Omit<ProbeSurroundings, 'root' | 'fileSystems'>;

/** The probes that need nothing from the machine on which they run. */
const TYPES = ['http', 'tcp'];
const OF_CLUSTERS = 'kube';

/** Runs the probes of a target from here. */
export class TargetProbes {
  private readonly surroundings: TargetSurroundings;

  constructor(
    private readonly reach: Pick<Reach, 'look'>,
    private readonly clock: Clock,
    ending: AbortSignal,
    more: Pick<ProbeSurroundings, 'whyModuleFails' | 'kube' | 'expressions'> = {},
  ) {
    this.surroundings = { allowExec: false, probeNetworks: new ProbeNetworks(), ending, ...more };
  }

  check(entry: ConfigEntry): void {
    const type = Object.keys(entry.spec).find((field) => FILES.includes(field));
    if (type !== undefined)
      throw new RefusedError(
        'node',
        `a ${type} probe needs an applier on the machine itself: use ${[...TYPES, ...(this.surroundings.kube === undefined ? [] : [OF_CLUSTERS])].join(' or ')} for this target`,
      );
    checkProbe(entry, this.surroundings as ProbeSurroundings);
  }

  /** If a probe fails because the target does not answer, that is not known of the probe. */
  async run(probes: readonly ConfigEntry[], untilMs: number): Promise<readonly ProbeResult[]> {
    const results = await runProbes(probes, this.surroundings as ProbeSurroundings, untilMs, this.clock);
    if (results.every(({ passed }) => passed) || (await this.reach.look())) return results;
    return results.map((result) => (result.passed ? result : { ...result, unreachable: true }));
  }
}

const FILES = ['file', 'exec', 'reach'];
