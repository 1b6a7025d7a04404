import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { mkdir, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { buildOnce } from '#libs/process';
import { VirtualMachine } from './machine.js';
import { markUsed, removeOldImages } from './old-images.js';
import { cacheFolder, codename, findVmTools, type VmTools } from './tools.js';

/** The saved state of a booted machine: its disk, boot loader, memory and devices. */
export interface VmImage {
  readonly folder: string;
  readonly tools: VmTools;
}

const run = promisify(execFile);

/** The image in the user's cache. Builds it once, which takes a minute or two. */
export async function findVmImage(
  say: (text: string) => void = (text) => void process.stderr.write(`${text}\n`),
): Promise<VmImage> {
  const tools = await findVmTools(say);
  const folder = imageFolder();
  if (!(await markUsed(folder)))
    await buildOnce(folder, say, 'a Debian machine for the tests in a VM (SLUICE_NO_VM=1 leaves those out)', (work) =>
      build(work, tools),
    );
  await removeOldImages(folder);
  return { folder, tools };
}

/** A machine that continues from the saved state, with its own disk in this folder. */
export async function restoreVm({ folder: image, tools }: VmImage, folder: string): Promise<VirtualMachine> {
  await mkdir(folder, { recursive: true });
  for (const name of ['disk.img', 'grub.img'])
    await run('cp', ['--sparse=always', '--reflink=auto', join(image, name), folder]);
  const machine = new VirtualMachine(folder, tools);
  machine.start(join(image, 'state'));
  await machine.up();
  // Its clock shows the time at which it was saved.
  await machine.run(`date --set=@${Math.floor(Date.now() / 1_000)}`);
  return machine;
}

/** The name depends on everything that it is built from. */
export function imageFolder(): string {
  const digest = createHash('sha256').update(`${codename() ?? ''} ${process.version}`);
  for (const file of files(recipe())) digest.update(`${file}\0`).update(readFileSync(join(recipe(), file)));
  // Includes how it is run, because a saved state fits no other devices.
  digest.update(readFileSync(join(dirname(recipe()), 'qemu.ts')));
  return join(cacheFolder(), `vm-${digest.digest('hex').slice(0, 12)}`);
}

async function build(work: string, tools: VmTools): Promise<string> {
  const folder = join(work, 'image');
  await mkdir(folder);
  // In a separate mount namespace, whose mounts end with it. Otherwise a build that is killed would leave the machine's
  // /proc and /dev mounted below a folder that is removed.
  await run(
    'unshare',
    [
      '--mount',
      '--pid',
      '--fork',
      '--kill-child',
      '--propagation',
      'private',
      'nice',
      '-n',
      '5',
      join(recipe(), 'build.sh'),
      folder,
      process.execPath,
      process.versions.node,
    ],
    { env: tools.env, maxBuffer: 1 << 24 },
  );
  const machine = new VirtualMachine(folder, tools);
  try {
    machine.start();
    await machine.up();
    await machine.run('systemctl is-system-running --wait; systemctl start systemd-journald && sync');
    const state = join(work, 'state');
    await machine.save(state);
    await rename(state, join(folder, 'state'));
  } finally {
    await machine.close();
  }
  return folder;
}

const files = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .flatMap((entry) => (entry.isFile() ? [join(entry.parentPath, entry.name).slice(folder.length + 1)] : []))
    .toSorted();

/** Not next to the sources: the build has no such files. */
function recipe(): string {
  const [before = '', inDist] = __dirname.split(/[\\/]dist[\\/]/);
  return join(inDist === undefined ? __dirname : join(before, 'libs/testing/src/vm'), 'recipe');
}
