import { createHash } from 'node:crypto';
import { decodeConfig, nodeToken, type Config, type Fact, type NewFact, type Targets } from '#libs/contracts';
import {
  atOnce,
  fold,
  newCopy,
  turn,
  type ConfigName,
  type Copy,
  type TurnEffect,
  type Entry,
  type GatherPort,
  type Handlers,
  type Need,
  type Tail,
} from '#libs/engine';
import * as merger from '../../../services/merger/src/core/index.js';
import * as validator from '../../../services/validator/src/core/index.js';

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** A ledger with the cores of the merger and the validator, all in memory: what they cost without the server. */
export class MemoryServices {
  readonly facts: Entry[] = [];
  private readonly targets = new Map<string, Targets>();
  private readonly blobs = this.newBlobs();
  private readonly merger = newCopy(merger.mergerCore(sha256));
  private readonly validator = newCopy(validator.validatorCore);
  private published = 0;

  /** Facts of other services. Both cores fold them. */
  append(facts: readonly NewFact[], targets?: Targets): void {
    for (const fact of facts) {
      this.facts.push({
        sequence: this.facts.length + 1,
        readMs: 0,
        fact: { ...fact, v: 1, at: '2026-01-01T00:00:00.000Z' } as Fact,
        ...(targets === undefined ? {} : { targets }),
      });
    }
  }

  publish(body: object): string {
    this.merger.inputs.push({
      type: 'published',
      sequence: ++this.published,
      source: 'bench',
      text: JSON.stringify(body),
      storedMs: 0,
    });
    return `c${this.published}`;
  }

  /** Lets both work until neither has anything left to do. */
  settle(): void {
    for (let before = -1; before !== this.facts.length;) {
      before = this.facts.length;
      this.turn(this.merger);
      this.turn(this.validator);
    }
  }

  private turn<S, I, N extends Need, G>(copy: Copy<S, I, N, G>): void {
    fold(copy, this.tail(copy.folded));
    const tail = (): Tail => this.tail(copy.folded);
    atOnce<TurnEffect<I>, void>(turn(copy), {
      ...this.blobs,
      read: tail,
      'catch-up': tail,
      now: () => ({ monotonicMs: 0, leadingSinceMs: 0, wallMs: 0 }),
      append: ({ facts }) => {
        const from = this.facts.length;
        for (const fact of facts)
          this.append([fact], fact.type === 'config.rendered' ? this.targetsOf(fact.targets) : undefined);
        return { outcome: 'appended', entries: this.facts.slice(from), upTo: this.facts.length };
      },
      // Like the real writer, it serializes every view.
      views: ({ writes }) => {
        for (const { value } of writes) JSON.stringify(value);
        return 0;
      },
    });
  }

  private tail(after: number): Tail {
    return { entries: this.facts.slice(after), upTo: this.facts.length };
  }

  private targetsOf(keys: readonly string[]): Targets {
    return Object.assign({}, ...keys.map((key) => this.targets.get(key))) as Targets;
  }

  /** Each content is parsed once, as in production. */
  private newBlobs(): Handlers<GatherPort> {
    const texts = new Map<string, string>();
    const parsed = new Map<string, Config>();
    const configOf = ({ node, hash }: ConfigName): Config | undefined => {
      const text = texts.get(`${nodeToken(node)}.${hash}`);
      const config = parsed.get(hash) ?? (text === undefined ? undefined : decodeConfig(text));
      if (config !== undefined) parsed.set(hash, config);
      return config;
    };
    return {
      'read-configs': ({ names }) => names.map(configOf),
      'input-end': () => undefined,
      'missing-objects': () => new Set(),
      'put-configs': ({ configs }) => {
        for (const { node, hash, text } of configs) texts.set(`${nodeToken(node)}.${hash}`, text);
      },
      'put-targets': ({ change, targets }) => {
        const key = `${change}.${sha256(JSON.stringify(targets))}`;
        this.targets.set(key, targets);
        return [key];
      },
      pause: () => undefined,
    };
  }
}
