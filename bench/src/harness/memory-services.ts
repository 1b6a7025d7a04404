import { createHash } from 'node:crypto';
import { EMPTY_CONFIG, nodeToken, type Config, type Fact, type NewFact, type Targets } from '#libs/contracts';
import { atOnce, fold, newCopy, turn, type Copy, type Effect, type Entry, type Need, type Tail } from '#libs/kernel';
import { emptyHash } from '#libs/rendering';
import * as merger from '../../../services/merger/src/core/index.js';
import * as validator from '../../../services/validator/src/core/index.js';

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** A ledger and the merger's and the validator's cores on it, all in memory: what they cost without the way to the server. */
export class MemoryServices {
  readonly facts: Entry[] = [];
  private readonly configs = new Map<string, string>();
  private readonly blobs = new Map<string, Targets>();
  private readonly merger = newCopy(merger.mergerCore(sha256));
  private readonly validator = newCopy(validator.validatorCore);
  private published = 0;

  /** Facts of other services, which both fold. */
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
    });
    return `c${this.published}`;
  }

  /** Lets both work until neither has anything more to do. */
  settle(): void {
    for (let before = -1; before !== this.facts.length;) {
      before = this.facts.length;
      this.turn(this.merger, (needs, state) => new Map(needs.map((need) => [need.key, this.render(need, state)])));
      this.turn(this.validator, (needs, state) => new Map(needs.map((need) => [need.key, this.review(need, state)])));
    }
  }

  private turn<S, I, N extends Need, G>(
    copy: Copy<S, I, N, G>,
    gather: (needs: readonly N[], state: S) => ReadonlyMap<string, G>,
  ): void {
    fold(copy, this.tail(copy.folded));
    const steps = turn(copy);
    for (let next = steps.next(); next.done !== true;)
      next = steps.next(this.perform(copy, next.value, gather) as never);
  }

  private perform<S, I, N extends Need, G>(
    copy: Copy<S, I, N, G>,
    effect: Effect<I, N>,
    gather: (needs: readonly N[], state: S) => ReadonlyMap<string, G>,
  ): unknown {
    switch (effect.do) {
      case 'read':
      case 'catch-up':
        return this.tail(copy.folded);
      case 'now':
        return { monotonicMs: 0, leadingSinceMs: 0 };
      case 'gather':
        return gather(effect.needs, copy.state);
      case 'append': {
        const from = this.facts.length;
        for (const fact of effect.facts)
          this.append([fact], fact.type === 'config.rendered' ? this.targetsOf(fact.targets) : undefined);
        return { outcome: 'appended', entries: this.facts.slice(from), upTo: this.facts.length };
      }
      case 'views':
        // As the writer does: the text is made, whatever becomes of it.
        for (const { value } of effect.writes) JSON.stringify(value);
        return 0;
      case 'settle':
      case 'back-off':
        return undefined;
    }
  }

  private tail(after: number): Tail {
    return { entries: this.facts.slice(after), upTo: this.facts.length };
  }

  private targetsOf(keys: readonly string[]): Targets {
    return Object.assign({}, ...keys.map((key) => this.blobs.get(key))) as Targets;
  }

  private render(need: merger.RenderNeed, state: merger.State): merger.Gathered {
    if (need.do === 'plan') throw new Error('nobody asked for a plan');
    if (need.do === 'render-nodes') {
      const nodes = merger.renderNodes(state, need.nodes, sha256);
      for (const { node, hash, text } of nodes) this.configs.set(`${nodeToken(node)}.${hash}`, text);
      return { did: 'render-nodes', nodes };
    }
    const change = state.changes.get(need.change);
    if (change === undefined) throw new Error(`no ${need.change}`);
    const { texts, ...rendering } = atOnce(merger.renderChange(state, change, need.replaces, sha256));
    for (const [node, text] of texts) this.configs.set(`${nodeToken(node)}.${rendering.targets[node]?.to ?? ''}`, text);
    const key = `${need.change}.${sha256(JSON.stringify(rendering.targets))}`;
    this.blobs.set(key, rendering.targets);
    return { did: 'render-change', rendering, blobs: [key], targets: rendering.targets };
  }

  /** Each content is parsed once, as in production. */
  private review(need: validator.ReviewNeed, state: validator.State): validator.Reviewed {
    const parsed = new Map<string, Config>([[emptyHash(sha256), EMPTY_CONFIG]]);
    const material: validator.Material = {
      config: (node, hash) => {
        const known = parsed.get(hash);
        if (known !== undefined) return known;
        const text = this.configs.get(`${nodeToken(node)}.${hash}`);
        if (text === undefined) return undefined;
        const config = JSON.parse(text) as Config;
        parsed.set(hash, config);
        return config;
      },
      capabilities: (node) => state.capabilities.get(node) ?? [],
      labels: (node) => state.labels.get(node) ?? {},
      policies: [],
    };
    return need.do === 'review-change'
      ? atOnce(validator.reviewTargets(need.targets, material))
      : validator.reviewNodes(need.nodes, material);
  }
}
