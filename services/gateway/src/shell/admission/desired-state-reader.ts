import type { Bus } from '#libs/nats';
import type { Kube } from '#libs/kube';
import { KINDS } from '#libs/manifests';
import type { Logger } from '#libs/process';
import type { DesiredState } from '../../core/index.js';
import { collectionOf, heardOf } from '../seen-objects.js';
import { followViews, type ViewTakers } from '../seen-views.js';

/** Follows the desired state, in every copy, because any copy may be asked. Returns a function that stops it. */
export function followDesiredState(bus: Bus, kube: Kube, desired: DesiredState, logger: Logger): () => void {
  const stopping = new AbortController();
  const takers: ViewTakers = {
    nodes: (_, view) => desired.showNode(view),
    fragments: (_, view) => desired.showFragment(view),
    changes: (_, view) => desired.changes.show(view),
    'known-bad': (key, view) => desired.knownBad.show(key, view),
  };
  followViews(bus, takers, logger, stopping.signal, { read: (bucket) => void desired.read.add(bucket) });
  const stops = KINDS.map(({ name: kind }) =>
    kube.followObjects(
      collectionOf(kind),
      (all) =>
        desired.list(
          kind,
          all.map((object) => heardOf(kind, object)),
        ),
      (event, object) => {
        if (event === 'deleted') desired.forget(`${kind}/${object.name}`);
        else desired.hear(heardOf(kind, object));
      },
      logger,
    ),
  );
  return () => {
    stopping.abort();
    for (const stop of stops) stop();
  };
}
