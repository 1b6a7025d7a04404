import type { CustomObject, Kube } from '#libs/kube';
import { kindPath } from '#libs/kube';
import { API_VERSION, KINDS, pluralOf, ROLLOUT_KIND } from '#libs/manifests';
import { monotonicMs, type Logger } from '#libs/process';
import { RETRY, TAKE_OVER, type ObservedObject, type RolloutResource, type State, type Status } from '../core/index.js';

/** The collection of a kind. */
export const collectionOf = (kind: string): string => kindPath(API_VERSION, pluralOf(kind));
export const pathOf = (kind: string, name: string): string => `${collectionOf(kind)}/${encodeURIComponent(name)}`;

/**
 * Follows the objects of every kind into the state. Returns a function that stops it. A kind whose definition is
 * missing is retried, and delays no other.
 */
export function followResources(kube: Kube, state: State, logger: Logger, changed: () => void): () => void {
  const stops = KINDS.map(({ name: kind }) =>
    kube.followObjects(
      collectionOf(kind),
      (all) => {
        state.list(
          kind,
          all.map((object) => heardOf(kind, object)),
          monotonicMs(),
        );
        changed();
      },
      (event, object) => {
        if (event === 'deleted') state.gone({ kind, name: object.name, uid: object.uid }, monotonicMs());
        else state.hear(heardOf(kind, object), monotonicMs());
        changed();
      },
      logger,
    ),
  );
  stops.push(
    kube.followObjects(
      collectionOf(ROLLOUT_KIND),
      (all) => {
        state.rolloutResources.clear();
        for (const object of all) state.hearRollout(rolloutOf(object));
        state.listedKinds.add(ROLLOUT_KIND);
        changed();
      },
      (event, object) => {
        if (event === 'set') state.hearRollout(rolloutOf(object));
        else if (state.rolloutResources.get(object.name)?.uid === object.uid)
          state.rolloutResources.delete(object.name);
        changed();
      },
      logger,
    ),
  );
  return () => stops.forEach((stop) => stop());
}

export function heardOf(
  kind: string,
  { name, uid, generation, revision, labels, annotations, spec, deleting, finalizers, status }: CustomObject,
): ObservedObject {
  return {
    kind,
    name,
    uid,
    generation,
    revision,
    labels,
    spec,
    deleting,
    finalizers,
    retry: annotations[RETRY] ?? '',
    takeOver: annotations[TAKE_OVER] === 'true',
    status: status as Status | undefined,
  };
}

export function rolloutOf({ name, uid, generation, revision, spec, deleting, status }: CustomObject): RolloutResource {
  const paused = (spec as { readonly paused?: boolean } | undefined)?.paused;
  return { name, uid, generation, revision, paused, deleting, status: status as Status | undefined };
}
