import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { shardsFor } from '../../../cli/src/up/inventory.js';
import { ControlPlane } from '../harness/control-plane.js';
import { median, sum } from '../harness/figures.js';
import { ROOT, SLUICE, temporaryFolder } from '../harness/folders.js';
import { file, fileProbe, pool } from '../harness/manifests.js';
import { result, SkipError, type Part, type PartContext, type Result } from '../harness/part.js';
import { phase } from '../harness/phase.js';
import { cpuMs, end, endedChildrenCpuMs, start, until } from '../harness/processes.js';
import { LEDGER } from '#libs/contracts';

const ANSIBLE = '2.17.7';
const NODES = 100;
const AT_ONCE = 10;
/** Runs in each of two halves, after some for warm-up, because the code of a daemon has been compiled long ago. */
const RUNS = 7;
const WARM_UP = 3;
const SHARDS = shardsFor(NODES, availableParallelism());
const exec = promisify(execFile);

/** The same file and the same check on a hundred local nodes, with Sluice and with Ansible. */
export const peer: Part = {
  name: 'peer',
  what: `write and check a file on ${NODES} local nodes, ${AT_ONCE} at a time, compared with ansible-core ${ANSIBLE}`,
  run,
};

interface Cost {
  readonly seconds: number;
  readonly cpuSeconds: number;
}

async function run(context: PartContext): Promise<readonly Result[]> {
  const playbook = await findAnsible(context);
  // Before and after, because the speed of a shared machine changes from minute to minute.
  const before = await phase(context, bySluice);
  const theirs = await byAnsible(context, playbook);
  const ours = medianOf([...before, ...(await phase(context, bySluice))]);
  context.say(`Sluice ${JSON.stringify(ours)}, Ansible ${JSON.stringify(theirs)}`);
  const each = ({ seconds, cpuSeconds }: Cost): string =>
    `${((seconds / NODES) * 1000).toFixed(1)} ms and ${((cpuSeconds / NODES) * 1000).toFixed(1)} ms of CPU per node`;
  const note = `Sluice ${each(ours)} (server, services, appliers with files and journals; median of ${2 * RUNS}, half of them before Ansible and half after it, each half after ${WARM_UP} runs to warm up); ansible-core ${ANSIBLE}, serial ${AT_ONCE}, forks ${AT_ONCE}, connection local, the better of two runs: ${each(theirs)}`;
  return [
    result(
      { name: 'peer/time', unit: '× as fast', value: theirs.seconds / ours.seconds, note },
      { of: 'value', least: 50 },
    ),
    result(
      { name: 'peer/cpu', unit: '× less CPU', value: theirs.cpuSeconds / ours.cpuSeconds },
      { of: 'value', least: 50 },
    ),
  ];
}

/** Installs it into the user's cache once. Throws SkipError if that is impossible. */
async function findAnsible(context: PartContext): Promise<string> {
  const cache = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'sluice', `ansible-core-${ANSIBLE}`);
  const playbook = join(cache, 'bin', 'ansible-playbook');
  if (existsSync(playbook)) return playbook;
  try {
    context.say(`installing ansible-core ${ANSIBLE} into ${cache}`);
    await exec('python3', ['-m', 'venv', cache]);
    await exec(
      join(cache, 'bin', 'pip'),
      ['install', '--quiet', '--disable-pip-version-check', `ansible-core==${ANSIBLE}`],
      { maxBuffer: 1 << 24 },
    );
    return playbook;
  } catch (error) {
    throw new SkipError(
      `ansible-core ${ANSIBLE} cannot be installed from PyPI (python3 -m venv, pip install): ${(error as Error).message.split('\n').slice(-2).join(' ')}`,
    );
  }
}

const nodeNames = Array.from({ length: NODES }, (_, i) => `local-${String(i).padStart(3, '0')}`);
/**
 * Passes before and after. A probe that fails before the change is ignored afterwards, and its retries would take time.
 */
const CHECK = '(^|\\n)version [0-9]+';
const contentOf = (version: number): string => `# managed\nversion ${version}\n`;

/** Real appliers with files and journals, in as many processes as `sluice up` uses for this many nodes. */
async function bySluice(context: PartContext): Promise<readonly Cost[]> {
  const plane = await ControlPlane.start(context);
  const folder = temporaryFolder(context, 'peer');
  const inventory = join(folder, 'inventory.json');
  writeFileSync(inventory, JSON.stringify({ nodes: nodeNames.map((name) => ({ name, labels: {} })) }));
  const appliers = SHARDS.map((shard) =>
    start(process.execPath, [SLUICE, 'appliers', '--inventory', inventory, '--data', folder, '--shard', shard], {
      stdio: 'ignore',
      env: { ...process.env, NATS_URL: plane.server.url },
      cwd: ROOT,
    }),
  );
  context.atEnd(async () => void (await Promise.all(appliers.map((one) => end(one)))));
  await until(
    'all appliers reviewed',
    async () => (await plane.bus.stored(LEDGER, { last_by_subj: `node.reviewed.${nodeNames.at(-1)}` })) ?? undefined,
    60_000,
  );
  await plane.untilQuiet();
  await plane.rollOut([pool(AT_ONCE)]);
  const costs: Cost[] = [];
  for (let version = 0; version < WARM_UP + RUNS; version += 1) {
    await plane.untilQuiet();
    const used = (): number => plane.cpuMs() + sum(appliers.map(({ pid }) => cpuMs(pid as number)));
    const before = used();
    const publishedMs = Date.now();
    const { at } = await plane.rollOut([file('peer', contentOf(version)), fileProbe('peer', '/etc/bench/peer', CHECK)]);
    const cost = { seconds: (at.succeeded - publishedMs) / 1000, cpuSeconds: (used() - before) / 1000 };
    const wrong = nodeNames.filter(
      (name) =>
        readFileSync(join(folder, 'nodes', name, 'root', 'etc', 'bench', 'peer'), 'utf8') !== contentOf(version),
    );
    if (wrong.length > 0) throw new Error(`${wrong.length} nodes do not have the file`);
    if (version >= WARM_UP) costs.push(cost);
  }
  return costs;
}

const medianOf = (costs: readonly Cost[]): Cost => ({
  seconds: median(costs.map(({ seconds }) => seconds)),
  cpuSeconds: median(costs.map(({ cpuSeconds }) => cpuSeconds)),
});

/** The better of two runs: the first creates the files, the second replaces them. */
async function byAnsible(context: PartContext, playbook: string): Promise<Cost> {
  const folder = temporaryFolder(context, 'ansible');
  for (const name of nodeNames) mkdirSync(join(folder, name));
  writeFileSync(
    join(folder, 'hosts'),
    `[all]\n${nodeNames.map((name) => `${name} ansible_connection=local`).join('\n')}\n`,
  );
  writeFileSync(
    join(folder, 'ansible.cfg'),
    `[defaults]\nforks = ${AT_ONCE}\ngathering = explicit\nhost_key_checking = false\nlocal_tmp = ${folder}/tmp\nremote_tmp = ${folder}/tmp\ninterpreter_python = ${join(dirname(playbook), 'python')}\n`,
  );
  writeFileSync(
    join(folder, 'play.yml'),
    [
      '- hosts: all',
      `  serial: ${AT_ONCE}`,
      '  gather_facts: false',
      '  tasks:',
      `  - template: {src: ${folder}/file.j2, dest: "${folder}/{{ inventory_hostname }}/peer", mode: "0644"}`,
      `  - command: {argv: [grep, -qE, "^version [0-9]+", "${folder}/{{ inventory_hostname }}/peer"]}`,
      '    changed_when: false',
      '',
    ].join('\n'),
  );
  const costs = [await playOnce(playbook, folder, contentOf(7)), await playOnce(playbook, folder, contentOf(8))];
  context.say(`Ansible ${JSON.stringify(costs)}`);
  return {
    seconds: Math.min(...costs.map(({ seconds }) => seconds)),
    cpuSeconds: Math.min(...costs.map(({ cpuSeconds }) => cpuSeconds)),
  };
}

async function playOnce(playbook: string, folder: string, content: string): Promise<Cost> {
  writeFileSync(join(folder, 'file.j2'), content);
  const cpuBefore = endedChildrenCpuMs();
  const startMs = performance.now();
  const env = { ...process.env, ANSIBLE_CONFIG: join(folder, 'ansible.cfg'), ANSIBLE_HOME: join(folder, 'home') };
  await exec(playbook, ['-i', join(folder, 'hosts'), join(folder, 'play.yml')], {
    cwd: folder,
    env,
    maxBuffer: 1 << 26,
  }).catch((error: Error & { readonly stdout?: string }) => {
    throw new Error(`ansible-playbook failed: ${(error.stdout ?? error.message).slice(-1_000)}`, { cause: error });
  });
  const seconds = (performance.now() - startMs) / 1000;
  const wrong = nodeNames.filter((name) => readFileSync(join(folder, name, 'peer'), 'utf8') !== content);
  if (wrong.length > 0) throw new Error(`Ansible left ${wrong.length} nodes without the file`);
  return { seconds, cpuSeconds: (endedChildrenCpuMs() - cpuBefore) / 1000 };
}
