import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { EXIT } from '../output/exit.js';
import { reasonLines } from '../output/reasons.js';
import { nodeFolders } from '../up/data-folder.js';
import { badChange, DEMO_NODES, DEMO_PATH, goodChange, isGoodFile, poolsChange, SHOWN } from './scene.js';
import { ends, publish, showTree, titleOf, type Stage, type Step } from './telling.js';

/** Shows a newcomer how Sluice works, and checks every step. */
export async function tellDemo(stage: Stage): Promise<readonly Step[]> {
  const { tell, colours } = stage;
  const title = titleOf(stage);

  title(1, 'Pools');
  tell(
    'A pool limits how many of its nodes may be unavailable at once: one edge node, two workers. A policy changes no node and takes effect immediately.',
  );
  const pools = await publish(stage, poolsChange());
  showTree(stage, pools);

  title(2, 'A good change');
  tell(`Every node gets ${DEMO_PATH} with its own name and zone, and a probe that expects "hello" in it.`);
  const good = await publish(stage, goodChange());
  showTree(stage, good);
  const afterGood = showFiles(stage);
  const steps = [
    ends(pools, EXIT.done, 'the pools are committed'),
    ends(good, EXIT.done, 'the good change is committed'),
    filesAre(afterGood, 'every node has its greeting'),
  ];
  if (!steps.every(({ ok }) => ok)) return steps;

  title(3, 'A bad change, and its rollback');
  tell(
    'Somebody removes the greeting. On the first nodes the probe fails: they roll back and report the config as bad.',
  );
  const bad = await publish(stage, badChange());
  showTree(stage, bad);
  tell('The rollout stops, and the configs are now known-bad:');
  // The config and its recipe are both listed, with the same reason.
  const knownBad = [...(await stage.fleet.list('known-bad'))]
    .filter(([key, { gone }]) => !gone && key.startsWith('config.'))
    .map(([, story]) => story);
  for (const { hash, node, reason } of knownBad.slice(0, 4))
    tell(`  ${colours.red('✖')} config ${hash.slice(0, 12)} on ${node}: ${reason.split('\n')[0]}`);
  const afterBad = showFiles(stage);
  steps.push(
    ends(bad, EXIT.failed, 'the bad change is rolled back'),
    {
      expected: 'the bad config is known-bad',
      actual: `${knownBad.length} configs in known-bad`,
      ok: knownBad.length > 0,
    },
    filesAre(afterBad, 'every node has its greeting again'),
  );

  title(4, 'The same change again');
  tell('Somebody publishes it again. This time it is rejected before it reaches a node:');
  const again = await publish(stage, badChange());
  tell(
    [`  ${again.id}  ${again.end.status.word}`, ...reasonLines(again.end.change?.reasons ?? [], colours)].join('\n'),
  );
  steps.push(
    ends(again, EXIT.rejected, 'the bad change is rejected when it is published again'),
    filesAre(readFiles(stage.data), 'every node still has its greeting'),
  );
  tell(
    steps.every(({ ok }) => ok)
      ? `\n${colours.green('Everything worked as expected.')} Next: start a local fleet with sluice up, or see sluice --help.`
      : '',
  );
  return steps;
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
  return { expected, actual: wrong.length === 0 ? 'as expected' : wrong.join(', '), ok: wrong.length === 0 };
}
