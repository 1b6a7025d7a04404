import { About, Fields } from '../shape/description.js';
import { Nested, NestedList, Optional } from '../shape/checked.js';
import { CountOrPercent, Duration, patternForm, TextList, Word } from '../shape/forms.js';
import { SHORT_NAME } from '../fragment-name.js';
import { DrainSpec } from './drain.js';
import { PauseSpec } from './pause.js';
import { SelectingSpec, type Kind } from './kind.js';

/** More nodes than any fleet has. A limit, so that typing errors are found. */
export const MAX_NODES = 1_000_000;
/** With less time, a node could not fetch its config and start a guard, so every change would fail. */
const LEAST_APPLY = '2s';
const DRIFT_WAYS = ['report', 'overwrite', 'repair'] as const;
/** Kubernetes requires a limit for nested lists. Nobody has this many groups. */
const MOST_EDITORS = 64;
/** Each is read in every round of a drain, and nobody needs more. */
const MOST_PAUSED = 16;

const GROUP = patternForm(
  'bad-group',
  /^\S(.{0,251}\S)?$/,
  'must be the name of a group in Kubernetes: at most 253 characters, without spaces at the start or end',
);
const KIND = patternForm('bad-kind', /^[A-Z][A-Za-z0-9]{0,62}$/, 'must be the name of a kind, such as File');

/** Who may change what the nodes of a pool get: some kinds, or all of them. */
@Fields({
  groups: 'Kubernetes groups whose members may change what the nodes of the pool get.',
  kinds: 'Kinds that they may change, such as `File`. Default: all.',
})
export class EditorsSpec {
  @TextList(GROUP, 1) readonly groups!: readonly string[];
  @Optional() @TextList(KIND, 1) readonly kinds?: readonly string[];
}

/** Whether silent nodes keep their units. */
@Fields({
  ignoreAfter:
    'After this time, such as `10m`, a silent node is skipped: it no longer counts as unavailable until it is heard from again.',
})
export class SilentNodesSpec {
  @Duration() readonly ignoreAfter!: string;
}

/** A set of nodes that share a budget: how many of them may be unavailable at once. */
@About('A set of nodes that share a budget: how many may be unavailable at once.')
@Fields({
  maxUnavailable:
    'How many nodes may be unavailable at once: a number, or a percentage of the members such as `"10%"`, rounded down but at least 1. Default: 1.',
  applyTimeout:
    'How long a node may take to apply a config, probes included, such as `2m`; at least `2s`. Default: `2m`; `10m` for a cluster, and `6h` for a fleet.',
  drainTimeout: 'How long a drain may take before `drain.onTimeout` applies. Default: `10m`.',
  drain: 'How nodes are drained with Kubernetes.',
  pause:
    'Kubernetes objects to pause (`spec.paused`) while nodes of the pool are being drained, such as a `MachineConfigPool` of OpenShift. An object that somebody else paused stays as it is.',
  drift:
    'What to do if files or settings on a node were changed by hand. `report`: report it, and keep changes from the node until it is undone. `overwrite`: report it, and let the next change overwrite it. `repair`: also repair it without a change, within the budget. Default: `report`.',
  silentNodes:
    '`count`: a silent node counts as unavailable until it is heard from again. `{ignoreAfter: 10m}`: it no longer counts after that time. Default: `count` for machines; a silent cluster or network function does not count.',
  editors:
    'Who may change what the nodes of the pool get. Enforced by the admission webhook in Kubernetes. Default: everyone that the API server allows.',
})
export class PoolSpec extends SelectingSpec {
  @Optional() @CountOrPercent(MAX_NODES) readonly maxUnavailable?: number | string;
  @Optional()
  @Duration({
    least: LEAST_APPLY,
    because:
      'a node has half of it to prepare a change, and needs a third of it to roll back; leave it out for the default',
  })
  readonly applyTimeout?: string;
  @Optional() @Duration() readonly drainTimeout?: string;
  @Optional() @Nested(() => DrainSpec) readonly drain?: DrainSpec;
  @Optional() @NestedList(() => PauseSpec, MOST_PAUSED) readonly pause?: readonly PauseSpec[];
  @Optional() @Word(DRIFT_WAYS) readonly drift?: (typeof DRIFT_WAYS)[number];
  @Optional() @Nested(() => SilentNodesSpec, 'count') readonly silentNodes?: 'count' | SilentNodesSpec;
  /**
   * Enforced by the Kubernetes webhook, because only it knows the user. Default: everybody with access to the API
   * server.
   */
  @Optional() @NestedList(() => EditorsSpec, MOST_EDITORS) readonly editors?: readonly EditorsSpec[];
}

/** `default` is the pool of the nodes that no other pool selects. */
export const pool: Kind = {
  name: 'Pool',
  spec: PoolSpec,
  role: 'policy',
  ownsPath: false,
  reservedNames: ['default'],
  nameForm: SHORT_NAME,
};
