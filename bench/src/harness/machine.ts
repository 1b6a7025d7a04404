import { execFile } from 'node:child_process';
import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os';
import { promisify } from 'node:util';
import { findNatsServer } from '#libs/process';

/** The machine that ran the bench. */
export interface Machine {
  readonly cores: number;
  readonly cpu: string;
  readonly memoryGb: number;
  readonly kernel: string;
  readonly node: string;
  readonly natsServer: string;
  /** The load of the machine when the bench started: runnable processes, averaged over one minute. */
  readonly loadBefore: number;
}

export async function describeMachine(): Promise<Machine> {
  const { stdout } = await promisify(execFile)(await findNatsServer(), ['--version']);
  return {
    cores: availableParallelism(),
    cpu: cpus()[0]?.model ?? 'unknown',
    memoryGb: Math.round(totalmem() / 1e9),
    kernel: release(),
    node: process.version,
    natsServer: /\d+\.\d+\.\d+\S*/.exec(stdout)?.[0] ?? stdout.trim(),
    loadBefore: Math.round((loadavg()[0] ?? 0) * 100) / 100,
  };
}

export const machineLine = ({ cores, cpu, memoryGb, node, natsServer, loadBefore }: Machine): string =>
  `${cores} cores (${cpu}), ${memoryGb} GB, Node ${node}, nats-server ${natsServer}, load before ${loadBefore}`;
