import { Fields } from '../shape/description.js';
import { Nested, WhenAbsent, type Class } from '../shape/checked.js';
import { NodeSelector, SELECTOR_ABSENT } from '../selector.js';

/** What every fragment has in its spec. */
@Fields({ nodeSelector: 'Which nodes this is for, by their labels. `{}` selects every node.' })
export class SelectingSpec {
  @WhenAbsent(SELECTOR_ABSENT) @Nested(() => NodeSelector) readonly nodeSelector!: NodeSelector;
}

/** A kind of fragment: what people may write under its name. */
export interface Kind {
  readonly name: string;
  readonly spec: Class<SelectingSpec>;
  /** `state` is what a node should have; `policy` is how to change, is never rendered and knows no templates. */
  readonly role: 'state' | 'policy';
  /** Whether `spec.path` is a place on the node that no other fragment may claim. */
  readonly ownsPath?: boolean;
  /**
   * What else of a node no other fragment may claim: absolute paths, and names such as `sysctl vm.swappiness`. Bears
   * with any spec.
   */
  readonly claims?: (spec: Readonly<Record<string, unknown>>) => readonly string[];
  /** The fields of a spec that hold no templates. Bears with any spec. */
  readonly literal?: (spec: Readonly<Record<string, unknown>>) => readonly string[];
  readonly reservedNames?: readonly string[];
  /** The name is a token of subjects or a part of a file name, and must be a DNS label. */
  readonly hasShortName?: true;
}
