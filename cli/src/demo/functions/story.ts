import { EXIT } from '../../output/exit.js';
import { reasonLines } from '../../output/reasons.js';
import { ends, eventually, isSame, publish, showTree, titleOf, type Stage, type Step } from '../telling.js';
import { REPLICAS, type DemoReplicas, type ReplicaName } from './replicas.js';
import { badLink, badNat, goodChange, newPort, poolChange, withoutMail } from './scene.js';

/** The replica that is cut off, and the one that loses its config. */
const AWAY: ReplicaName = 'cnf-4';
const EMPTIED: ReplicaName = 'cnf-2';

const START = ['mail:25 → main', 'web:443 → main'];
const LATEST = ['web:8443 → main'];

/** Shows how replicas of a network function are configured, and checks every step at the replicas. */
export async function tellFunctions(stage: Stage, replicas: DemoReplicas): Promise<readonly Step[]> {
  const steps: Step[] = [];
  const chapters = [goodRollout, replicaAway, badChanges, emptyReplica];
  for (const chapter of chapters) {
    steps.push(...(await chapter(stage, replicas)));
    if (!steps.every(({ ok }) => ok)) return steps;
  }
  stage.tell(
    `\n${stage.colours.green('Everything worked as expected.')} Next: connect your replicas, as in docs/guides/network-functions.md.`,
  );
  return steps;
}

async function goodRollout(stage: Stage, replicas: DemoReplicas): Promise<readonly Step[]> {
  titleOf(stage)(1, 'A policy and two rules');
  stage.tell(
    'The pool allows one replica at a time. Each gets the policy, then the rules that use it, and must then reach the host behind it.',
  );
  const pool = await publish(stage, poolChange());
  const good = await publish(stage, goodChange(replicas.hostUrl));
  showTree(stage, good);
  showRules(stage, replicas);
  const turns = replicas.writers.filter((name, i) => name !== replicas.writers[i - 1]);
  return [
    ends(pool, EXIT.done, 'the pool is committed'),
    ends(good, EXIT.done, 'the change is committed'),
    haveRules(replicas, REPLICAS, START, 'every replica has both rules'),
    isSame([...turns].sort(), REPLICAS, 'the replicas changed one after the other'),
  ];
}

async function replicaAway(stage: Stage, replicas: DemoReplicas): Promise<readonly Step[]> {
  const { tell } = stage;
  titleOf(stage)(2, 'A replica that does not answer');
  tell(`${AWAY} is cut off. Meanwhile a rule changes, and another one is deleted. Nothing has failed:`);
  replicas.cutOff(AWAY);
  const silent = await eventually(stage, `${AWAY} is silent`, async () => (await nodeState(stage, AWAY)) === 'silent');
  const changed = await publish(stage, newPort());
  showTree(stage, changed);
  const removed = await publish(stage, withoutMail());
  showTree(stage, removed);
  showRules(stage, replicas);
  const waiting = await eventually(stage, `the deletion waits for ${AWAY}`, async () => {
    const mail = await fragment(stage, 'Mwan3Rule/mail');
    return mail?.removing === true && mail.stillOn.join() === AWAY;
  });
  tell(`The deletion is not complete: Mwan3Rule/mail is still on ${AWAY}.`);
  const others = REPLICAS.filter((name) => name !== AWAY);
  const steps = [
    silent,
    ends(changed, EXIT.done, 'the change is committed without it'),
    ends(removed, EXIT.done, 'the deletion is committed without it'),
    haveRules(replicas, others, LATEST, 'the others have the latest rules'),
    haveRules(replicas, [AWAY], START, `${AWAY} still has its old rules`),
    waiting,
  ];
  tell(`\n${AWAY} answers again. It gets what it missed, and the deletion completes:`);
  replicas.connect(AWAY);
  steps.push(
    await eventually(stage, `${AWAY} has caught up`, () => replicas.rules(AWAY).join() === LATEST.join()),
    await eventually(stage, 'the deletion is complete', async () => {
      const mail = await fragment(stage, 'Mwan3Rule/mail');
      return mail === undefined || !mail.removing;
    }),
  );
  showRules(stage, replicas);
  return steps;
}

async function badChanges(stage: Stage, replicas: DemoReplicas): Promise<readonly Step[]> {
  const { tell, colours } = stage;
  titleOf(stage)(3, 'Two bad changes');
  tell('The function would report success for this NAT, and iptables would reject it. It reaches no replica:');
  const nat = await publish(stage, badNat());
  tell([`  ${nat.id}  ${nat.end.status.word}`, ...reasonLines(nat.end.change?.reasons ?? [], colours)].join('\n'));
  tell('\nThis policy is valid, but the host is not reached by wan2. The first replica rolls back:');
  const link = await publish(stage, badLink());
  showTree(stage, link);
  return [
    ends(nat, EXIT.rejected, 'the NAT is rejected'),
    ends(link, EXIT.failed, 'the policy is rolled back'),
    isSame(
      REPLICAS.map((name) => replicas.links(name)),
      REPLICAS.map(() => ['wan1']),
      'every replica uses wan1 again',
    ),
  ];
}

async function emptyReplica(stage: Stage, replicas: DemoReplicas): Promise<readonly Step[]> {
  titleOf(stage)(4, 'A replica that restarts');
  stage.tell(
    `The container of ${EMPTIED} restarts, and its config is gone. It gets everything again, without a rollout:`,
  );
  const before = (await stage.fleet.list('rollouts')).size;
  replicas.empty(EMPTIED);
  const again = await eventually(
    stage,
    `${EMPTIED} has everything again`,
    () => replicas.rules(EMPTIED).join() === LATEST.join() && replicas.links(EMPTIED).join() === 'wan1',
  );
  showRules(stage, replicas, [EMPTIED]);
  return [again, isSame((await stage.fleet.list('rollouts')).size, before, 'there was no rollout')];
}

function showRules({ tell, colours }: Stage, replicas: DemoReplicas, names: readonly ReplicaName[] = REPLICAS): void {
  for (const name of names) tell(`  ${colours.dim(name)}  ${replicas.rules(name).join(', ') || '(none)'}`);
}

const haveRules = (
  replicas: DemoReplicas,
  names: readonly ReplicaName[],
  rules: readonly string[],
  expected: string,
): Step =>
  isSame(
    names.map((name) => replicas.rules(name)),
    names.map(() => rules),
    expected,
  );

const nodeState = async ({ fleet }: Stage, name: string): Promise<string | undefined> =>
  (await fleet.list('nodes')).get(name)?.state;

const fragment = async ({ fleet }: Stage, id: string) =>
  [...(await fleet.list('fragments')).values()].find((view) => `${view.fragment?.kind}/${view.fragment?.name}` === id);
