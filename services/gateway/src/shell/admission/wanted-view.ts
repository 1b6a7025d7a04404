import { growingMs, listViews, type Bus } from '#libs/bus';
import type { ViewBucket, ViewValues } from '#libs/contracts';
import type { Kube } from '#libs/kube';
import { KINDS } from '#libs/manifests';
import type { Logger } from '#libs/runtime';
import type { Wanted } from '../../core/index.js';
import { collectionOf, heardOf } from '../seen-objects.js';
import { followView } from '../seen-views.js';

const AGAIN_MS = 10_000;

/** Follows what is wanted, in every copy: whoever is asked has to know. Returns how to stop that. */
export function followWanted(bus: Bus, kube: Kube, wanted: Wanted, logger: Logger): () => void {
  const stopping = new AbortController();
  const { signal } = stopping;
  void followWhole(
    bus,
    'nodes',
    logger,
    signal,
    (view) => wanted.showNode(view),
    () => wanted.read.add('nodes'),
  );
  void followWhole(
    bus,
    'fragments',
    logger,
    signal,
    (view) => wanted.showFragment(view),
    () => wanted.read.add('fragments'),
  );
  void followWhole(
    bus,
    'changes',
    logger,
    signal,
    (view) => wanted.changes.show(view),
    () => wanted.read.add('changes'),
  );
  void followWhole(
    bus,
    'known-bad',
    logger,
    signal,
    (view, key) => wanted.knownBad.show(key, view),
    () => wanted.read.add('known-bad'),
  );
  const stops = KINDS.map(({ name: kind }) =>
    kube.followObjects(
      collectionOf(kind),
      (all) =>
        wanted.list(
          kind,
          all.map((object) => heardOf(kind, object)),
        ),
      (event, object) => {
        if (event === 'deleted') wanted.forget(`${kind}/${object.name}`);
        else wanted.hear(heardOf(kind, object));
      },
      logger,
    ),
  );
  return () => {
    stopping.abort();
    for (const stop of stops) stop();
  };
}

/** All that a view shows, so that one knows when that was read; then what changes. */
async function followWhole<B extends ViewBucket>(
  bus: Bus,
  bucket: B,
  logger: Logger,
  signal: AbortSignal,
  show: (view: ViewValues[B], key: string) => void,
  read: () => void,
): Promise<void> {
  for (let tries = 0; !signal.aborted; tries += 1) {
    try {
      for (const [key, view] of await listViews(bus, bucket)) show(view, key);
      read();
      break;
    } catch (error) {
      logger.warn({ error, bucket }, 'a view cannot be read; trying again');
      await new Promise((resolve) => setTimeout(resolve, growingMs(tries, 200, AGAIN_MS)).unref());
    }
  }
  await followView(bus, bucket, logger, signal, (key, value) => show(value, key));
}
