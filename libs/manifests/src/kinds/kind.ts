import type { Fragment } from '#libs/contracts';
import { Fields } from '../shape/description.js';
import { Nested, Optional, WhenAbsent, type Class } from '../shape/checked.js';
import { Word, type TextForm } from '../shape/forms.js';
import { NodeSelector, SELECTOR_ABSENT } from '../selector.js';
import { compositeKindOf } from './functions/composite-kinds.js';
import { functionKindOf } from './functions/table.js';

/** The fields that every spec has. */
@Fields({ nodeSelector: 'Which nodes this is for, by their labels. `{}` selects every node.' })
export class SelectingSpec {
  @WhenAbsent(SELECTOR_ABSENT) @Nested(() => NodeSelector) readonly nodeSelector!: NodeSelector;
}

/** When a deletion is complete: at once after its rollout, or only when no node has the fragment any more. */
export const DELETIONS = ['rollout', 'everyNode'] as const;

/** The fields that every spec of config for nodes has. */
@Fields({
  deletion:
    'When a deletion of this is complete: `rollout`, once its rollout has ended, or `everyNode`, once no node has it any more. Nodes that were deferred get rid of it later. Default: `rollout`; for objects of network functions, `everyNode`.',
})
export class NodeSpec extends SelectingSpec {
  @Optional() @Word(DELETIONS) readonly deletion?: string;
}

/** Whether its deletion is complete only when no node has it any more. For objects of network functions, that is so. */
export const leavesEveryNode = ({ kind, spec }: Pick<Fragment, 'kind' | 'spec'>): boolean =>
  (spec?.['deletion'] ?? (isForFunctions(kind) ? 'everyNode' : 'rollout')) === 'everyNode';

const isForFunctions = (kind: string): boolean =>
  functionKindOf(kind) !== undefined || compositeKindOf(kind) !== undefined;

/** A kind of fragment. */
export interface Kind {
  readonly name: string;
  readonly spec: Class<SelectingSpec>;
  /**
   * `state` is what a node should have, and `composite` is rendered into such fragments. `policy` is how to change it,
   * and `input` is what others refer to: both are never rendered and have no templates.
   */
  readonly role: 'state' | 'composite' | 'policy' | 'input';
  /** Whether `spec.path` is a path on the node that no other fragment may claim. */
  readonly ownsPath?: boolean;
  /**
   * Other names on a node that no other fragment may claim: absolute paths, and names such as `sysctl vm.swappiness`.
   * Accepts any spec.
   */
  readonly claims?: (spec: Readonly<Record<string, unknown>>, name: string) => readonly string[];
  /** The fields of a spec without templates. Accepts any spec. */
  readonly literal?: (spec: Readonly<Record<string, unknown>>) => readonly string[];
  /** The field of a spec that lists manifests for another fleet. They are checked like published ones. */
  readonly manifests?: string;
  readonly reservedNames?: readonly string[];
  /** The form of the name, if not every DNS subdomain can be one. */
  readonly nameForm?: TextForm;
}
