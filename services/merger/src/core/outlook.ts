import { correctedDrift, isDriftKept, type DeferredBecause, type DriftSetting } from '#libs/contracts';
import { isPolicyKind, parseRolloutPolicy, selects, type ParsedRolloutPolicy } from '#libs/manifests';
import { DEFAULT_POOL, poolPolicies, type PoolPolicy } from '#libs/rules';
import { committedFragments, fragmentsWith } from './committed.js';
import { poolsOf, poolsWith } from './rendering.js';
import { openByAge, type Change, type NodeState, type State } from './state.js';

/** When a node changes because of a change, if it does. */
export type Outlook = 'in-rollout' | 'after-commit' | 'unchanged' | { readonly deferred: DeferredBecause };

/** The policies that decide at one time which nodes get a config. */
interface Policies {
  /** By node. */
  readonly poolOf: ReadonlyMap<string, string>;
  readonly drift: (pool: string) => DriftSetting;
  readonly strict: readonly ParsedRolloutPolicy[];
}

/**
 * Tells when each node changes, by the same rules as the scheduler. Nodes that the rollout does not reach may change
 * after the commit: if the change ends what deferred them, they get the committed config, and with `drift: repair`
 * their drift is repaired.
 */
export class Outlooks {
  private readonly now: Policies;
  /** During the rollout. Of a pool that exists already, the committed settings still apply. */
  private readonly during: Policies;
  private readonly after: Policies;
  private readonly hasPolicies: boolean;
  private readonly rolling: ReadonlySet<string>;

  constructor(
    private readonly state: State,
    change: Change,
    replaces: readonly string[],
  ) {
    const committed = poolPolicies(committedFragments(state));
    const nodes = [...state.nodes.values()];
    const now = poolsWith(state, NOTHING, []);
    const after = poolsWith(state, change, replaces);
    const poolOf = poolsOf(state, nodes, after);
    const strict = strictPolicies(state, change);
    this.now = { poolOf: poolsOf(state, nodes, now), drift: driftIn(committed, now), strict: strictPolicies(state) };
    this.during = { poolOf, drift: driftIn(committed, after), strict };
    this.after = { poolOf, drift: driftIn(after), strict };
    this.hasPolicies = [...change.apply, ...change.delete].some(({ kind }) => isPolicyKind(kind));
    this.rolling = rollingNodes(state, replaces);
  }

  /** The nodes that may change without being a target: all of them if the change has policies. */
  outside(touched: readonly NodeState[]): readonly NodeState[] {
    const { drift, nodes } = this.state;
    const some = this.hasPolicies ? [...nodes.values()] : touched;
    return some.filter((node) => drift.has(node.node) || this.isBehind(node));
  }

  ofTarget(node: NodeState): Outlook {
    const then = this.held(node, this.after);
    if (this.held(node, this.during) === undefined) return 'in-rollout';
    return then === undefined ? 'after-commit' : { deferred: then };
  }

  /** `isTouched`: a fragment of the change selects it, and gives it the config that is committed already. */
  ofOther(node: NodeState, isTouched: boolean): Outlook {
    if (this.rolling.has(node.node)) return 'unchanged';
    const [now, then] = [this.held(node, this.now), this.held(node, this.after)];
    if (this.isBehind(node)) {
      if (then !== undefined) return isTouched ? { deferred: then } : 'unchanged';
      return now === undefined ? 'unchanged' : 'after-commit';
    }
    const drift = this.state.drift.get(node.node) ?? [];
    const repairs = ({ poolOf, drift: settingOf }: Policies): boolean =>
      settingOf(poolOf.get(node.node) ?? '') === 'repair';
    if (then !== undefined || drift.length === 0 || !repairs(this.after) || repairs(this.now)) return 'unchanged';
    return correctedDrift(drift).length > 0 ? 'after-commit' : { deferred: 'refused' };
  }

  poolOf({ node }: NodeState): string {
    return this.after.poolOf.get(node) ?? DEFAULT_POOL.name;
  }

  /** It has another config than the committed one, and no rollout is about to change that. */
  isBehind({ node }: NodeState): boolean {
    const [has, desired] = [this.state.inForce.get(node), this.state.desired.get(node)?.hash ?? ''];
    return has !== undefined && desired !== '' && has !== desired && !this.rolling.has(node);
  }

  private held({ node, labels }: NodeState, { poolOf, drift, strict }: Policies): DeferredBecause | undefined {
    const { notReady, drift: drifts, failing } = this.state;
    const whys = notReady.get(node) ?? [];
    if (whys.includes('silent')) return 'silent';
    if (whys.includes('taken')) return 'taken';
    const drifted = { differences: drifts.get(node) ?? [], restored: !whys.includes('degraded') };
    if (isDriftKept(drift(poolOf.get(node) ?? ''), drifted)) return 'drift';
    return failing.has(node) && strict.some(({ selector }) => selects(selector, labels)) ? 'unhealthy' : undefined;
  }
}

const NOTHING = { apply: [], delete: [] };

/** What the first of these pools with a name does about drift. */
const driftIn =
  (...pools: readonly ReadonlyMap<string, PoolPolicy>[]) =>
  (name: string): DriftSetting =>
    (pools.find((some) => some.has(name))?.get(name) ?? DEFAULT_POOL).drift;

const strictPolicies = (state: State, ...changes: readonly Change[]): readonly ParsedRolloutPolicy[] =>
  fragmentsWith(state, ...changes)
    .filter(({ kind }) => kind === 'RolloutPolicy')
    .map(parseRolloutPolicy)
    .filter(({ health }) => health === 'strict');

function rollingNodes(state: State, replaces: readonly string[]): ReadonlySet<string> {
  const open = openByAge(state).filter(({ change }) => !replaces.includes(change));
  return new Set(open.flatMap(({ change }) => Object.keys(state.targets.get(change) ?? {})));
}
