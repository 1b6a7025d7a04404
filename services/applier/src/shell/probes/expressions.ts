import { fork, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { CutShortError } from './probe-types.js';

export interface ExpressionRequest {
  readonly expression: string;
  /** The object, as JSON. */
  readonly object: string;
}
/** `tooMuch`: it was stopped because it took this. */
export type ExpressionAnswer =
  | { readonly value: boolean }
  | { readonly problem: string }
  | { readonly tooMuch: string };

/** No API server stores a larger object by default. */
const MAX_OBJECT = 2 * 1_048_576;
const MAX_HEAP_MB = 64;
/** Far more than the process needs to stop an expression itself. After that, it is killed. */
const ANSWER_MS = 3_000;
const START_MS = 30_000;
/** What took too long is not tried again for this long: it would take the time from the probes of other clusters. */
const REST_MS = 60_000;
const MOST_RESTING = 10_000;

/**
 * Evaluates CEL expressions in a process of its own, one after another. An expression can loop for hours and can use up
 * all memory, and nothing can stop it in the process that calls it, which serves many clusters.
 */
export class Expressions {
  private child: ChildProcess | undefined;
  private starting: Promise<ChildProcess> | undefined;
  private turn: Promise<void> = Promise.resolve();
  private readonly resting = new Map<string, { readonly untilMs: number; readonly tooMuch: string }>();

  constructor(private readonly program = join(__dirname, 'expression-main.js')) {}

  /**
   * Why the expression is not true for the object; undefined if it is. Throws CutShortError if other expressions took
   * all the time.
   */
  async problem(expression: string, object: object, timeoutMs: number): Promise<string | undefined> {
    const text = JSON.stringify(object);
    if (text.length > MAX_OBJECT) return `the object has more than ${MAX_OBJECT} bytes`;
    const key = `${uidOf(object)} ${expression}`;
    const rest = this.resting.get(key);
    if (rest !== undefined && rest.untilMs > performance.now())
      return `it was stopped less than a minute ago, because it takes ${rest.tooMuch}`;
    const untilMs = performance.now() + timeoutMs;
    const answer = await this.inTurn(timeoutMs, () => this.answerTo({ expression, object: text }, untilMs));
    if ('problem' in answer) return answer.problem;
    if ('value' in answer) return answer.value ? undefined : 'it is false';
    if (this.resting.size >= MOST_RESTING) this.resting.clear();
    this.resting.set(key, { untilMs: performance.now() + REST_MS, tooMuch: answer.tooMuch });
    return `it was stopped, because it takes ${answer.tooMuch}`;
  }

  /** The process that evaluates; undefined if none runs. */
  get pid(): number | undefined {
    return this.child?.pid;
  }

  close(): void {
    this.child?.kill('SIGKILL');
  }

  private async inTurn<T>(timeoutMs: number, work: () => Promise<T>): Promise<T> {
    const before = this.turn;
    let leave = (): void => undefined;
    const mine = new Promise<void>((resolve) => (leave = resolve));
    this.turn = before.then(() => mine);
    try {
      if (!(await isWithin(before, timeoutMs)))
        throw new CutShortError('the expressions of other probes took all the time');
      return await work();
    } finally {
      leave();
    }
  }

  private async answerTo(request: ExpressionRequest, untilMs: number): Promise<ExpressionAnswer> {
    const child = this.child ?? (await this.started(untilMs));
    const answer = await nextMessage(child, ANSWER_MS, () => child.send(request));
    if (answer !== undefined && !('tooMuch' in (answer as ExpressionAnswer))) return answer as ExpressionAnswer;
    // It may have taken much memory, too.
    this.child = undefined;
    const isDead = child.exitCode !== null || child.signalCode !== null;
    child.kill('SIGKILL');
    if (answer !== undefined) return answer as ExpressionAnswer;
    return { tooMuch: isDead ? `more than ${MAX_HEAP_MB} MB of memory` : `more than ${ANSWER_MS / 1_000} s` };
  }

  /** If that takes longer than this probe may wait, the next one finds it started. */
  private async started(untilMs: number): Promise<ChildProcess> {
    this.starting ??= this.start().finally(() => (this.starting = undefined));
    if (await isWithin(this.starting, untilMs - performance.now())) return this.child as ChildProcess;
    throw new CutShortError('the process that evaluates expressions has not started yet');
  }

  private async start(): Promise<ChildProcess> {
    // Without the environment: options for Node.js in it are not meant for this process.
    const child = fork(this.program, [], { env: {}, execArgv: [`--max-old-space-size=${MAX_HEAP_MB}`], stdio: STDIO });
    child.on('error', () => undefined);
    if ((await nextMessage(child, START_MS, () => undefined)) === undefined) {
      child.kill('SIGKILL');
      throw new Error('the process that evaluates expressions did not start');
    }
    // It must not keep this process alive, and ends with it.
    child.unref();
    child.channel?.unref();
    child.once('exit', () => {
      if (this.child === child) this.child = undefined;
    });
    this.child = child;
    return child;
  }
}

/** A process that runs out of memory writes about it, and nobody needs to know more than that. */
const STDIO: ('ignore' | 'ipc')[] = ['ignore', 'ignore', 'ignore', 'ipc'];

/** The next message of the process; undefined if it ends, or sends none in time. */
function nextMessage(child: ChildProcess, timeoutMs: number, begin: () => void): Promise<unknown> {
  return new Promise((resolve) => {
    const end = (message?: unknown): void => {
      clearTimeout(timer);
      child.off('message', end).off('exit', onExit).off('error', onExit);
      resolve(message);
    };
    const onExit = (): void => end();
    const timer = setTimeout(onExit, timeoutMs);
    child.on('message', end).on('exit', onExit).on('error', onExit);
    begin();
  });
}

/** Rejects if the promise does in this time. */
async function isWithin(promise: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => (timer = setTimeout(() => resolve(false), Math.max(0, timeoutMs))));
  try {
    return await Promise.race([promise.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}

const uidOf = (object: object): string =>
  String((object as { readonly metadata?: { readonly uid?: unknown } }).metadata?.uid ?? '');
