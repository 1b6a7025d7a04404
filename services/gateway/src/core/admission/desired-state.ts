import { fragmentId, type Fragment, type FragmentView, type NodeView } from '#libs/contracts';
import { isNodeKind, kindOf, selectorOf } from '#libs/manifests';
import { compileFragment, indexOf, type CompiledFragment, type FragmentIndex } from '#libs/rules';
import { fragmentOfObject, type Digest, type ObservedObject } from '../resource.js';
import { KnownBad, NO_DIGEST } from './known-bad.js';
import { NodeTable } from './node-table.js';
import { OpenChanges } from './open-changes.js';

/** The desired fragment of an object; `gone` if the object is being deleted. */
type DesiredFragment = Fragment | 'gone' | 'unusable';

/**
 * The desired state as this copy sees it: objects, and the committed state for fragments without an object. It may lag
 * by a few moments, which is good enough for warnings.
 */
export class DesiredState {
  readonly nodes = new NodeTable();
  readonly changes = new OpenChanges();
  readonly knownBad = new KnownBad();
  /** Views and kinds that were read to their end once. Before that, rights are unknown. */
  readonly read = new Set<string>();
  private readonly committed = new Map<string, Fragment>();
  private readonly wishes = new Map<string, DesiredFragment>();
  private readonly inForce = new Map<string, Fragment>();
  private readonly compiled = new Map<string, CompiledFragment>();
  private index: FragmentIndex | undefined;

  /** Computes the digest that identifies configs. Without it, no config is known-bad. */
  constructor(readonly digest: Digest = NO_DIGEST) {}

  /** Whether enough was read to check rights. */
  get isReady(): boolean {
    return ['fragments', 'nodes', 'Pool'].every((what) => this.read.has(what));
  }

  showFragment({ fragment, gone }: FragmentView): void {
    if (fragment === undefined) return;
    const id = fragmentId(fragment);
    if (gone) this.committed.delete(id);
    else this.committed.set(id, fragment);
    this.settle(id);
  }

  showNode({ node: name, state, labels, capabilities }: NodeView): void {
    if (state === 'gone') this.nodes.remove(name);
    else this.nodes.set({ name, labels, capabilities: [...capabilities].sort() });
  }

  /** Sets all objects of a kind. Other objects are gone. */
  list(kind: string, all: readonly ObservedObject[]): void {
    const names = new Set(all.map(({ name }) => name));
    for (const id of [...this.wishes.keys()])
      if (id.startsWith(`${kind}/`) && !names.has(id.slice(kind.length + 1))) this.forget(id);
    for (const object of all) this.hear(object);
    this.read.add(kind);
  }

  hear(object: ObservedObject): void {
    const id = fragmentId(object);
    this.wishes.set(id, object.deleting ? 'gone' : (fragmentOfObject(object) ?? 'unusable'));
    this.settle(id);
  }

  forget(id: string): void {
    this.wishes.delete(id);
    this.settle(id);
  }

  get(id: string): Fragment | undefined {
    return this.inForce.get(id);
  }

  *ofKind(kind: string): Iterable<Fragment> {
    for (const [id, fragment] of this.inForce) if (id.startsWith(`${kind}/`)) yield fragment;
  }

  /** The fragments that define the config of nodes, without policies. */
  get all(): FragmentIndex {
    return (this.index ??= indexOf(this.compiled.values(), this.inputs()));
  }

  /** The same, with one fragment replaced or removed. */
  with(id: string, fragment: Fragment | undefined): FragmentIndex {
    const others = new Map(this.compiled);
    if (fragment === undefined || !isNodeKind(fragment.kind)) others.delete(id);
    else others.set(id, compileFragment(fragment));
    return indexOf(others.values(), this.inputs());
  }

  private *inputs(): Iterable<Fragment> {
    for (const fragment of this.inForce.values()) if (kindOf(fragment.kind)?.role === 'input') yield fragment;
  }

  /**
   * The desired form of a fragment: that of its object. Without an object, or if it cannot be used, the committed one.
   */
  private settle(id: string): void {
    const wish = this.wishes.get(id);
    const now = wish === 'gone' ? undefined : wish === undefined || wish === 'unusable' ? this.committed.get(id) : wish;
    const before = this.inForce.get(id);
    if (now === before || (now !== undefined && before !== undefined && JSON.stringify(now) === JSON.stringify(before)))
      return;
    this.index = undefined;
    this.compiled.delete(id);
    if (now === undefined) this.inForce.delete(id);
    else {
      this.inForce.set(id, now);
      this.nodes.use(selectorOf(now));
      if (isNodeKind(now.kind)) this.compiled.set(id, compileFragment(now));
    }
    if (before !== undefined) this.nodes.drop(selectorOf(before));
  }
}
