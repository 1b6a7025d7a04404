import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FleetClient } from '#libs/bus';
import { EXIT } from '../exit.js';
import { followChange, type FollowEnd } from '../follow.js';
import type { Colours } from '../io.js';
import { reasonLines } from '../reasons.js';
import { rolloutTree } from '../screens/rollout-tree.js';
import { nodeFolders } from '../up/data-folder.js';
import { badChange, DEMO_NODES, DEMO_PATH, goodChange, isGoodFile, poolsChange, SHOWN } from './scene.js';

export interface Stage {
  readonly fleet: FleetClient;
  readonly data: string;
  readonly tell: (text: string) => void;
  readonly colours: Colours;
  readonly signal: AbortSignal;
}

/** One thing that the demo promised, and whether it came so. */
export interface Step {
  readonly expected: string;
  readonly seen: string;
  readonly ok: boolean;
}

const STEP_MS = 20_000;

/** Tells the story to a newcomer, and checks every part of it. */
export async function tellDemo(stage: Stage): Promise<readonly Step[]> {
  const { tell, colours } = stage;
  const title = (n: number, text: string): void => tell(`\n${colours.bold(`${n}. ${text}`)}`);

  title(1, 'Pools');
  tell(
    'They say how many nodes may be unavailable at once: one of the edge, two workers. Policy alone touches no node, and holds at once.',
  );
  const pools = await publish(stage, poolsChange());
  showTree(stage, pools);

  title(2, 'A good change');
  tell(`It gives every node ${DEMO_PATH}, with its own name and zone filled in, and a probe that wants "hello" there.`);
  const good = await publish(stage, goodChange());
  showTree(stage, good);
  const afterGood = showFiles(stage);
  const steps = [
    ends(pools, EXIT.done, 'the pools are committed'),
    ends(good, EXIT.done, 'the good change is committed'),
    filesAre(afterGood, 'every node has its greeting'),
  ];
  if (!steps.every(({ ok }) => ok)) return steps;

  title(3, 'A bad change, and its way back');
  tell(
    'Somebody drops the greeting. The first nodes that get it notice: their probe fails, they put back what they had, and say that the config is bad.',
  );
  const bad = await publish(stage, badChange());
  showTree(stage, bad);
  tell('No other node is started, and what was bad is remembered:');
  // One config and one recipe of it tell the same story.
  const condemned = [...(await stage.fleet.list('known-bad'))]
    .filter(([key, { gone }]) => !gone && key.startsWith('config.'))
    .map(([, story]) => story);
  for (const { hash, node, reason } of condemned.slice(0, 4))
    tell(`  ${colours.red('✖')} config ${hash.slice(0, 12)} on ${node}: ${reason.split('\n')[0]}`);
  const afterBad = showFiles(stage);
  steps.push(
    ends(bad, EXIT.failed, 'the bad change is reverted'),
    {
      expected: 'the bad config is condemned',
      seen: `${condemned.length} configs in known-bad`,
      ok: condemned.length > 0,
    },
    filesAre(afterBad, 'every node has its greeting again'),
  );

  title(4, 'The same again');
  tell('Somebody publishes it once more. This time it reaches no node:');
  const again = await publish(stage, badChange());
  tell(
    [`  ${again.id}  ${again.end.standing.word}`, ...reasonLines(again.end.change?.reasons ?? [], colours)].join('\n'),
  );
  steps.push(
    ends(again, EXIT.rejected, 'the bad change is refused when published again'),
    filesAre(readFiles(stage.data), 'every node still has its greeting'),
  );
  tell(steps.every(({ ok }) => ok) ? `\n${colours.green('All as told.')} Next: sluice up, and sluice --help.` : '');
  return steps;
}

interface Published {
  readonly id: string;
  readonly end: FollowEnd;
}

async function publish({ fleet, signal, tell }: Stage, change: object): Promise<Published> {
  const { change: id } = await fleet.publishChange('demo', JSON.stringify(change), `demo:${randomUUID()}`);
  tell(`  $ sluice apply -f change.yaml --wait      # ${id}`);
  return {
    id,
    end: await followChange(fleet, id, { timeoutMs: STEP_MS, signal, endsWhenPaused: true, onUpdate: () => undefined }),
  };
}

function showTree({ tell, colours }: Stage, { id, end }: Published): void {
  const tree = rolloutTree(
    { id, change: end.change, rollout: end.rollout, pools: new Map(), now: new Date() },
    colours,
  );
  tell(
    tree
      .split('\n')
      .map((line) => `  ${line}`)
      .join('\n'),
  );
}

function showFiles({ data, tell, colours }: Stage): ReadonlyMap<string, string> {
  const files = readFiles(data);
  for (const node of SHOWN)
    tell(`  ${colours.dim(`${node}:${DEMO_PATH}`)}  ${(files.get(node) ?? '(none)').trimEnd()}`);
  return files;
}

function readFiles(data: string): ReadonlyMap<string, string> {
  const file = (node: string): string => join(nodeFolders(data, node).root, DEMO_PATH);
  return new Map(
    DEMO_NODES.filter(({ name }) => existsSync(file(name))).map(({ name }) => [name, readFileSync(file(name), 'utf8')]),
  );
}

function filesAre(files: ReadonlyMap<string, string>, expected: string): Step {
  const wrong = DEMO_NODES.filter(({ name }) => !isGoodFile(name, files.get(name) ?? '')).map(
    ({ name }) => `${name}: ${JSON.stringify(files.get(name) ?? null)}`,
  );
  return { expected, seen: wrong.length === 0 ? 'so it is' : wrong.join(', '), ok: wrong.length === 0 };
}

function ends({ id, end }: Published, exit: number, expected: string): Step {
  return {
    expected,
    seen: `${id} ${end.standing.word}${end.because === 'ended' ? '' : ` (${end.because})`} ${end.standing.detail}`.trim(),
    ok: end.because === 'ended' && end.exit === exit,
  };
}
