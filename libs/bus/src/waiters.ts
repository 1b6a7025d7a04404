import type { Answer } from '#libs/kernel';

interface Waiter {
  resolve(answer: Answer | undefined): void;
  reject(error: Error): void;
}

interface Query<S> {
  run(state: S): void;
  reject(error: Error): void;
}

/** Who waits for an input to be settled, or for a fresh look at the state. */
export class Waiters<I extends object, S> {
  private readonly inputs = new Map<I, Waiter>();
  private queries: Query<S>[] = [];

  get hasQueries(): boolean {
    return this.queries.length > 0;
  }

  add(input: I): Promise<Answer | undefined> {
    return new Promise((resolve, reject) => this.inputs.set(input, { resolve, reject }));
  }

  settle(inputs: readonly I[], answers: ReadonlyMap<I, Answer>): void {
    for (const input of inputs) {
      this.inputs.get(input)?.resolve(answers.get(input));
      this.inputs.delete(input);
    }
  }

  addQuery<T>(read: (state: S) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.queries.push({
        run: (state) => {
          try {
            resolve(read(state));
          } catch (error) {
            reject(error as Error);
          }
        },
        reject,
      });
    });
  }

  /** Answers those that were asked before this call, from the state that `fresh` resolves with; those asked since wait on. */
  async answerQueries(fresh: () => Promise<S>): Promise<void> {
    const asked = [...this.queries];
    const state = await fresh();
    // Rejected meanwhile: nobody waits for them any more.
    for (const query of asked.filter((one) => this.queries.includes(one))) query.run(state);
    this.queries = this.queries.filter((query) => !asked.includes(query));
  }

  /** Gives all back. */
  reject(error: Error): void {
    const waiting = [...this.inputs.values(), ...this.queries];
    this.inputs.clear();
    this.queries = [];
    for (const waiter of waiting) waiter.reject(error);
  }
}
