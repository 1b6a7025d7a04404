import { spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { appendFileSync, createReadStream, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { LocalInstallation } from './local-installation.js';
import { manifest } from './manifests.js';
import { ROOT, SLUICE } from './processes.js';

const MIB = 2 ** 20;
const LARGE_MIB = 100;
/** A process that had the whole content in memory would need more. */
const MOST_MORE_MIB = (LARGE_MIB * 3) / 4;

describe('a large file', () => {
  const installation = new LocalInstallation();

  beforeAll(() => installation.up('--nodes', '2'));
  afterAll(() => installation.close());

  const path = (name: string): string => join(installation.folder, name);
  /** Random, so that nothing can compress it. */
  function write(name: string, mib: number): void {
    writeFileSync(path(name), '');
    for (let i = 0; i < mib; i += 1) appendFileSync(path(name), randomBytes(MIB));
  }
  async function digest(file: string): Promise<string> {
    const hash = createHash('sha256');
    await pipeline(createReadStream(file), hash);
    return hash.digest('hex');
  }
  const nodes = (): readonly string[] => readdirSync(join(installation.data, 'nodes'));
  const onNode = (node: string): string => join(installation.data, 'nodes', node, 'root', 'opt/image.bin');
  const digests = (): Promise<readonly string[]> => Promise.all(nodes().map((node) => digest(onNode(node))));
  const image = (contentFrom: object) =>
    manifest('File', 'image', { nodeSelector: {}, path: '/opt/image.bin', contentFrom });
  const apply = (name: string, ...manifests: readonly object[]) =>
    installation.run('apply', '-f', installation.write(name, ...manifests), '--wait', '2m');

  /** The peak memory of the appliers in MiB, according to the kernel. */
  function peakOfAppliers(): number {
    const pids = Object.entries(installation.upJson.pids).filter(([name]) => name.startsWith('appliers'));
    return Math.max(...pids.map(([, pid]) => highWater(readFileSync(`/proc/${pid}/status`, 'utf8'))));
  }
  const highWater = (status: string): number => Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1_024;

  /** The peak memory of a command, in MiB. */
  function peakOf(...args: readonly string[]): number {
    const measure =
      'import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=sys.stderr); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)';
    const { stdout, stderr } = spawnSync('python3', ['-c', measure, process.execPath, SLUICE, ...args], {
      env: installation.env,
      cwd: ROOT,
      encoding: 'utf8',
    });
    if (stdout === '') throw new Error(stderr);
    return Number(stdout) / 1_024;
  }

  it('arrives on every node, byte for byte, and is never in memory as a whole', async () => {
    write('small.bin', 1);
    write('large.bin', LARGE_MIB);
    expect(await apply('small.json', image({ file: 'small.bin' }))).toMatchObject({ code: 0 });
    const before = peakOfAppliers();
    expect(await apply('large.json', image({ file: 'large.bin' }))).toMatchObject({ code: 0 });
    const sha256 = await digest(path('large.bin'));
    expect(await digests()).toEqual([sha256, sha256]);
    const more = peakOfAppliers() - before;
    expect(more).toBeLessThan(MOST_MORE_MIB);
  });

  it('is uploaded without being in memory as a whole', () => {
    write('other-small.bin', 1);
    write('other-large.bin', LARGE_MIB);
    const small = peakOf('upload', path('other-small.bin'));
    const large = peakOf('upload', path('other-large.bin'));
    expect(large - small).toBeLessThan(MOST_MORE_MIB);
  });

  it('comes back after a failed change, and is not in memory as a whole then either', async () => {
    const [before, peak] = [await digests(), peakOfAppliers()];
    const probe = manifest('Probe', 'fails', {
      nodeSelector: {},
      file: { path: '/opt/none', matches: '.' },
      timeout: '1s',
      retries: 0,
    });
    expect(await apply('fails.json', image({ file: 'other-large.bin' }), probe)).toMatchObject({ code: 4 });
    expect(await digests()).toEqual(before);
    expect(peakOfAppliers() - peak).toBeLessThan(MOST_MORE_MIB);
  });

  it('is rejected if the object store does not have it, with what to do', async () => {
    const rejected = await apply('unknown.json', image({ object: 'x.tar', sha256: 'a'.repeat(64) }));
    expect(rejected).toMatchObject({ code: 3 });
    expect(rejected.stderr).toContain(
      `File/image spec.contentFrom: the object store has no x.tar with sha256 ${'a'.repeat(64)}: upload the file with sluice upload`,
    );
  });
});
