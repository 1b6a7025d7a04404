import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ControlPlane } from '../harness/control-plane.js';
import { median, timed } from '../harness/figures.js';
import { joinFleet } from '../harness/fleet.js';
import { ROOT, SLUICE, temporaryFolder } from '../harness/folders.js';
import { contentOf, file, pool } from '../harness/manifests.js';
import { result, type Part, type PartContext, type Result } from '../harness/part.js';

const RUNS = 7;
const CONNECT = `require('@nats-io/transport-node').connect({servers: process.argv[1]}).then((nc) => nc.close())`;
const run_ = promisify(execFile);

/** How long people wait for an answer. */
export const cli: Part = { name: 'cli', what: 'sluice --help, sluice status, sluice plan with a full fleet', run };

async function run(context: PartContext): Promise<readonly Result[]> {
  const plane = await ControlPlane.start(context);
  await joinFleet(context, plane, { nodes: context.size });
  await plane.rollOut([pool(100)]);
  await plane.rollOut([file('bench', contentOf(1))]);
  await plane.untilQuiet();
  const manifest = join(temporaryFolder(context, 'cli'), 'change.json');
  writeFileSync(manifest, JSON.stringify(file('bench', contentOf(2))));
  const node = (...args: readonly string[]): Promise<number> =>
    medianOf(() =>
      run_(process.execPath, [...args], {
        cwd: ROOT,
        env: { ...process.env, NATS_URL: plane.server.url },
        maxBuffer: 1 << 28,
      }),
    );
  const bare = await node('-e', '0');
  const connected = await node('-e', CONNECT, plane.server.url);
  const about = `${context.size} nodes, median of ${RUNS}`;
  return [
    result(
      {
        name: 'cli/help',
        unit: 'ms',
        value: await node(SLUICE, '--help'),
        floor: bare,
        note: `median of ${RUNS}; floor: node -e 0`,
      },
      { of: 'value', most: 150 },
    ),
    result(
      {
        name: 'cli/status',
        unit: 'ms',
        value: await node(SLUICE, 'status'),
        floor: connected,
        note: `${about}; floor: Node.js that connects and exits`,
      },
      { of: 'value', most: 400 },
    ),
    result(
      {
        name: 'cli/plan',
        unit: 'ms',
        value: await node(SLUICE, 'plan', '-f', manifest),
        floor: connected,
        note: `${about}, a change that touches all nodes; floor: Node.js that connects and exits`,
      },
      { of: 'value', most: 3_000 },
    ),
  ];
}

async function medianOf(work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  await work(); // the files are in the page cache from here on
  for (let i = 0; i < RUNS; i += 1) times.push(await timed(work));
  return median(times);
}
