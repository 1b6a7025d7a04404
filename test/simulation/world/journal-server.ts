import type { Program } from '#libs/engine';
import { CALL_TIMEOUT_MS, type OwnershipEffect } from '../../../services/applier/src/core/index.js';
import type { TargetHost } from './target-host.js';

/** A request without a connection, or without an answer, fails after this. */
const NO_CONNECTION_MS = 100;
const REQUEST_MS = 10_000;

/** The copy that asks. */
export interface JournalClient {
  readonly process: string | undefined;
  readonly connected: boolean;
  readonly isLeading: boolean;
  readonly bootMs: number;
  after(ms: number, run: () => void): void;
}

type Answer = (value?: unknown) => void;
type Fail = (error: Error) => void;

/** The bucket with the journal of a target, as one copy of its applier reaches it. */
export class JournalServer {
  constructor(
    private readonly target: TargetHost,
    private readonly client: JournalClient,
  ) {}

  /** Runs a program of the ownership to its end. */
  carry<T>(program: Program<OwnershipEffect, T>, then: (value: T) => void, fail: Fail, isClaim = false): void {
    const resume = (how: () => IteratorResult<OwnershipEffect, T>): void => {
      let next: IteratorResult<OwnershipEffect, T>;
      try {
        next = how();
      } catch (error) {
        return fail(error as Error);
      }
      if (next.done === true) return then(next.value);
      this.answer(
        next.value,
        isClaim,
        (value) => resume(() => program.next(value)),
        (error) => resume(() => program.throw(error)),
      );
    };
    resume(() => program.next());
  }

  private answer(effect: OwnershipEffect, isClaim: boolean, answer: Answer, fail: Fail): void {
    const { client, target } = this;
    const { bus, mutant } = target.world;
    switch (effect.do) {
      case 'now': {
        const wrongMs = mutant?.takesOverAtOnce === true ? 1e9 : mutant?.waitsTooLong === true ? -1e7 : 0;
        return answer(client.bootMs + (isClaim ? wrongMs : 0));
      }
      case 'sleep': {
        const isSkipped = mutant?.expectsNoLateCalls === true && effect.ms === CALL_TIMEOUT_MS;
        return client.after(isSkipped ? 0 : effect.ms, () =>
          client.isLeading ? answer() : fail(new Error('the applier was stopped')),
        );
      }
      case 'read-value':
        if (client.connected) return this.request(() => bus.journals.get(target.name), 'done', answer, fail);
        return client.after(NO_CONNECTION_MS, () => fail(new Error('no connection')));
      case 'write-value': {
        const { text, revision } = effect;
        const by = client.process ?? '';
        const write = (): unknown => target.store(by, text, revision, isClaim);
        if (client.connected) return this.request(write, target.requestFate(), answer, fail);
        return client.after(NO_CONNECTION_MS, () => answer('not-sent'));
      }
    }
  }

  /** The request arrives, whatever becomes of the copy; its answer may be late, or never come. */
  private request(ask: () => unknown, fate: 'done' | 'lost' | 'answer-lost', answer: Answer, fail: Fail): void {
    const { client, target } = this;
    const [thereMs, backMs] = [target.requestMs(), target.requestMs()];
    let value: unknown;
    if (fate !== 'lost') target.world.clock.after(thereMs, () => (value = ask()));
    const inTime = fate === 'done' && thereMs + backMs < REQUEST_MS;
    client.after(inTime ? thereMs + backMs : REQUEST_MS, () => {
      if (inTime && client.connected) answer(value);
      else fail(new Error('no answer'));
    });
  }
}
