import { spawn, type ChildProcess } from 'node:child_process';

/**
 * Kills the pids of the last line when its input ends. It is a shell script, so that the children do not have to
 * cooperate.
 */
const SCRIPT = `
pids=
while read -r line; do pids=$line; done
[ -n "$pids" ] || exit 0
kill -TERM $pids 2>/dev/null
for i in 1 2 3 4 5 6 7 8; do
  sleep 0.5
  left=
  for pid in $pids; do kill -0 $pid 2>/dev/null && left="$left $pid"; done
  [ -n "$left" ] || exit 0
done
kill -KILL $left 2>/dev/null
`;

/** Ends processes if this process dies without ending them. */
export class Guard {
  private shell: ChildProcess | undefined;
  private pids: readonly number[] = [];
  private closed = false;

  watch(pids: readonly number[]): void {
    if (this.closed) return;
    this.pids = pids;
    this.shell ??= this.start();
    this.shell.stdin?.write(`${pids.join(' ')}\n`);
  }

  close(): void {
    this.closed = true;
    this.shell?.stdin?.end('\n');
    this.shell = undefined;
  }

  private start(): ChildProcess {
    const shell = spawn('/bin/sh', ['-c', SCRIPT], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
    shell.stdin?.on('error', () => undefined); // the script died: the exit handler below starts another
    shell.once('error', () => undefined);
    shell.once('exit', () => {
      if (this.shell !== shell) return;
      this.shell = undefined;
      setTimeout(() => this.shell === undefined && this.watch(this.pids), 1_000).unref();
    });
    (shell.stdin as unknown as { unref?: () => void }).unref?.();
    shell.unref();
    return shell;
  }
}
