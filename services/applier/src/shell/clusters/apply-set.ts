import { createHash } from 'node:crypto';
import { APPLY_SET, groupKindOf, type KubeManifest } from '#libs/manifests/lean';
import type { LiveObject } from '#libs/kube/lean';
import { RefusedError, UnreachableError } from '../ports.js';
import { isOvertaken, refusalFrom, type ClusterCalls } from './cluster-calls.js';
import { CONFIG_MAPS, isOwnedBy, otherCluster, ownerIn } from './cluster-owner.js';
import { MANAGER } from './field-sets.js';

/** The objects that Sluice manages for one cluster in one place. Its parent is a ConfigMap. */
export interface ApplySet {
  readonly id: string;
  readonly name: string;
  readonly namespace: string;
  /** Where all its objects are; undefined if they may be in any namespace. */
  readonly within?: string;
  /** What more its parent has, such as owners. */
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** Identified as the specification of ApplySets says: from the name, namespace and kind of the parent. */
export const applySetOf = (parent: Omit<ApplySet, 'id'>): ApplySet => ({
  ...parent,
  id: `applyset-${createHash('sha256').update(`${parent.name}.${parent.namespace}.ConfigMap.`).digest('base64url')}-v1`,
});

/** What Sluice manages in a cluster itself. */
export const OWN_APPLY_SET = applySetOf(APPLY_SET);
/** The label of every object that Sluice applies to a cluster. */
export const PART_OF = 'applyset.kubernetes.io/part-of';

const KINDS = 'applyset.kubernetes.io/contains-group-kinds';
const NAMESPACES = 'applyset.kubernetes.io/additional-namespaces';

const TRIES = 5;

/**
 * The parent of the ApplySet of a cluster: a ConfigMap that lists which kinds of objects Sluice manages there, so that
 * other tools can find them, and the name of the node, so that no other node manages the same cluster.
 */
export class ApplySetParent {
  private written = '';
  /** The parent as this has written it. */
  private version = '';
  /** Whether this has read that the cluster is that of the node, or that it may become it. */
  private isChecked = false;

  constructor(
    private readonly calls: ClusterCalls,
    readonly node: string,
    private readonly set: ApplySet,
  ) {}

  /** Throws Refused if another node manages this cluster. */
  async requireOwn(): Promise<void> {
    const found = await this.read();
    this.checkOwner(found);
    this.isChecked = true;
    // Somebody has changed or deleted it.
    if (found?.metadata.resourceVersion !== this.version) this.written = '';
  }

  /**
   * Whether what Sluice has applied is known to be in this cluster. The kubeconfig may have been replaced by one for
   * another cluster since it was applied. Throws Unreachable if another node manages this cluster.
   */
  async isOwn(): Promise<boolean> {
    if (this.isChecked) return true;
    this.isChecked = isOwnedBy(await this.read(), this.node);
    return this.isChecked;
  }

  /**
   * Notes that objects of these kinds and namespaces may exist. Call it before they do. `areAll`: there are no others,
   * so that what was noted before is forgotten.
   */
  async include(
    objects: readonly Pick<KubeManifest, 'apiVersion' | 'kind' | 'metadata'>[],
    areAll: boolean,
  ): Promise<void> {
    const kinds = objects.map(groupKindOf);
    const namespaces = objects.flatMap(({ metadata }) => metadata.namespace ?? []);
    const text = JSON.stringify([areAll, sorted(kinds), sorted(namespaces)]);
    if (this.written === text) return;
    for (let tries = 1; ; tries++) {
      const found = await this.read();
      // Another process has begun this. If it has noted nothing here, it has applied nothing here.
      if (!this.isChecked && !isOwnedBy(found, this.node)) throw new UnreachableError(otherCluster(this.node));
      this.checkOwner(found);
      const noted = (key: string): readonly string[] =>
        areAll ? [] : (found?.metadata.annotations?.[key] ?? '').split(',').filter((part) => part !== '');
      const body = this.body(found, {
        [KINDS]: sorted([...kinds, ...noted(KINDS)]).join(','),
        [NAMESPACES]: sorted([...namespaces, ...noted(NAMESPACES)])
          .filter((one) => one !== this.set.namespace)
          .join(','),
      });
      try {
        const live = await this.calls.write((api) => api.apply(CONFIG_MAPS, body, { manager: MANAGER, force: true }));
        this.version = live.metadata.resourceVersion;
        this.written = text;
        return;
      } catch (error) {
        if (!isOvertaken(error) || tries === TRIES) throw refusalFrom(error);
      }
    }
  }

  private async read(): Promise<LiveObject | undefined> {
    try {
      return await this.calls.read((api) => api.read(CONFIG_MAPS, this.set.name, this.set.namespace));
    } catch (error) {
      throw refusalFrom(error);
    }
  }

  private body(found: LiveObject | undefined, lists: Readonly<Record<string, string>>) {
    const { resourceVersion } = found?.metadata ?? {};
    const { id, name, namespace, metadata } = this.set;
    return {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        ...metadata,
        name,
        namespace,
        ...(resourceVersion === undefined ? {} : { resourceVersion }),
        labels: { 'applyset.kubernetes.io/id': id },
        annotations: { 'applyset.kubernetes.io/tooling': 'sluice/v1', ...lists },
      },
      data: { node: this.node },
    };
  }

  private checkOwner(found: LiveObject | undefined): void {
    const owner = ownerIn(found);
    if (owner === undefined || owner === this.node) return;
    const { namespace, name } = this.set;
    throw new RefusedError(
      'node',
      `the cluster already gets its objects as the node ${owner}: two nodes must not have one cluster. If ${owner} is gone for good, delete the ConfigMap ${namespace}/${name} there`,
    );
  }
}

const sorted = (texts: readonly string[]): readonly string[] => [...new Set(texts)].sort();
