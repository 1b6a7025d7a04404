import { EXIT } from '../../output/exit.js';
import { ends, eventually, isSame, publish, showTree, titleOf, type Stage, type Step } from '../telling.js';
import { CLUSTERS, type ClusterName, type DemoClusters } from './clusters.js';
import { BAD, GOOD, moduleChange, poolChange } from './scene.js';

/** Longer than the timeout of the pool for each cluster. */
const STEP_MS = 150_000;
/** The cluster in which somebody deletes an object. */
const TOUCHED: ClusterName = 'cluster-2';

const wantedStates = (): readonly string[] => CLUSTERS.map((name) => `${GOOD}, 2/2 ready, "hello from ${name}"`);

/** Shows how objects get into clusters, and checks every step in the API servers. */
export async function tellClusters(stage: Stage, clusters: DemoClusters): Promise<readonly Step[]> {
  const steps: Step[] = [];
  for (const chapter of [goodRollout, badCanary, deletedObject]) {
    steps.push(...(await chapter(stage, clusters)));
    if (!steps.every(({ ok }) => ok)) return steps;
  }
  stage.tell(
    `\n${stage.colours.green('Everything worked as expected.')} Next: connect your clusters, as in docs/guides/clusters.md.`,
  );
  return steps;
}

async function goodRollout(stage: Stage, clusters: DemoClusters): Promise<readonly Step[]> {
  titleOf(stage)(1, 'A module for three clusters');
  stage.tell(
    'The pool allows one cluster at a time. Each gets a ConfigMap and a Deployment, and is done once the Deployment is ready.',
  );
  const pool = await publish(stage, poolChange(), STEP_MS);
  const good = await publish(stage, moduleChange(GOOD), STEP_MS);
  showTree(stage, good);
  await showStates(stage, clusters);
  return [
    ends(pool, EXIT.done, 'the pool is committed'),
    ends(good, EXIT.done, 'the module is committed'),
    isSame(await clusters.states(), wantedStates(), 'every cluster has the module'),
    isSame(turns(clusters), [...CLUSTERS], 'the clusters changed one after the other'),
  ];
}

async function badCanary(stage: Stage, clusters: DemoClusters): Promise<readonly Step[]> {
  const { tell } = stage;
  titleOf(stage)(2, 'A canary that never becomes ready');
  tell(
    `The pods of ${BAD} never become ready. After 20 seconds, the first cluster gets ${GOOD} again, and the others keep what they have:`,
  );
  const before = clusters.events.length;
  const bad = await publish(stage, moduleChange(BAD), STEP_MS);
  showTree(stage, bad);
  await showStates(stage, clusters);
  const touched = new Set(clusters.events.slice(before).map(({ cluster }) => cluster));
  return [
    ends(bad, EXIT.failed, 'the module is rolled back'),
    await eventually(stage, 'every cluster has the old module, and is ready', async () =>
      sameStates(await clusters.states()),
    ),
    isSame(touched.size, 1, 'only one cluster was changed'),
  ];
}

async function deletedObject(stage: Stage, clusters: DemoClusters): Promise<readonly Step[]> {
  titleOf(stage)(3, 'An object deleted by hand');
  stage.tell(`Somebody deletes the ConfigMap in ${TOUCHED}. Sluice watches it, and repairs that, without a rollout:`);
  const before = (await stage.fleet.list('rollouts')).size;
  stage.tell(`  $ kubectl delete configmap web      # in ${TOUCHED}`);
  const uid = await clusters.removeConfigMap(TOUCHED);
  const again = await eventually(stage, 'the ConfigMap exists again', async () => {
    const now = await clusters.uidOfConfigMap(TOUCHED);
    return now !== '' && now !== uid;
  });
  await showStates(stage, clusters, [TOUCHED]);
  return [
    again,
    isSame(await clusters.states(), wantedStates(), 'every cluster has the module'),
    isSame((await stage.fleet.list('rollouts')).size, before, 'there was no rollout'),
  ];
}

/** The clusters that changed, and whether one did so before another one was ready. */
function turns({ events }: DemoClusters): readonly string[] {
  const order: string[] = [];
  let unready: string | undefined;
  for (const { cluster, event } of events) {
    if (unready !== undefined && unready !== cluster) return [...order, `${cluster} before ${unready} was ready`];
    if (event === 'changed' && order.at(-1) !== cluster) order.push(cluster);
    unready = event === 'ready' ? undefined : cluster;
  }
  return [...order].sort();
}

const sameStates = (states: readonly string[]): boolean => states.join() === wantedStates().join();

async function showStates(
  { tell, colours }: Stage,
  clusters: DemoClusters,
  names: readonly ClusterName[] = CLUSTERS,
): Promise<void> {
  for (const name of names) tell(`  ${colours.dim(name)}  ${(await clusters.state(name)) || '(nothing)'}`);
}
