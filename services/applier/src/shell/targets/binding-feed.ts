import { setTimeout as sleep } from 'node:timers/promises';
import type { BoundField } from '#libs/contracts';
import { watchViews, type Bus } from '#libs/nats';
import type { Log } from '../../core/index.js';

/** Where an applier learns what the bindings of a node refer to. */
export interface WantedFields {
  /** Calls back with the fields that are known now, and whenever they change. Returns a function that ends it. */
  listen(node: string, onFields: (fields: readonly BoundField[]) => void): () => void;
}

const AGAIN_MS = 5_000;
const NONE: readonly BoundField[] = [];

/** One watch of the bucket for all nodes of a copy. */
export class BindingFeed implements WantedFields {
  private readonly fields = new Map<string, readonly BoundField[]>();
  private readonly listeners = new Map<string, (fields: readonly BoundField[]) => void>();
  private readonly ending = new AbortController();

  constructor(
    private readonly connection: Bus,
    private readonly log: Log,
  ) {
    void this.run();
  }

  listen(node: string, onFields: (fields: readonly BoundField[]) => void): () => void {
    this.listeners.set(node, onFields);
    onFields(this.fields.get(node) ?? NONE);
    return () => {
      if (this.listeners.get(node) === onFields) this.listeners.delete(node);
    };
  }

  stop(): void {
    this.ending.abort();
  }

  private async run(): Promise<void> {
    const { signal } = this.ending;
    while (!signal.aborted) {
      try {
        const forget = (node: string): void => this.set(node, NONE);
        for await (const { key, value } of watchViews(this.connection, 'bindings', '>', signal, forget))
          this.set(key, value.fields);
      } catch (error) {
        if (!signal.aborted)
          this.log.warn({ error: (error as Error).message }, 'what bindings refer to cannot be read; trying again');
      }
      await sleep(AGAIN_MS, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  private set(node: string, fields: readonly BoundField[]): void {
    if (fields.length === 0) this.fields.delete(node);
    else this.fields.set(node, fields);
    this.listeners.get(node)?.(fields);
  }
}
