import { reasonFor, type KnownBadView, type Reason } from '#libs/contracts';
import { knownBadWords } from '#libs/rules';
import type { Digest } from '../resource.js';

/** The configs that are known-bad, by hash and by recipe. */
export class KnownBad {
  private readonly stories = new Map<string, KnownBadView>();

  /** By its key in the bucket: `config.<hash>`, `recipe.<digest>`. */
  show(key: string, view: KnownBadView): void {
    if (view.gone) this.stories.delete(key);
    else this.stories.set(key, view);
  }

  /** If nothing is known-bad, no digest is needed. Somebody is waiting for the answer. */
  digestBy(digest: Digest): Digest {
    return this.stories.size === 0 ? NO_DIGEST : digest;
  }

  /** Why a node would not get this config, if it got it because of that fragment. */
  reasons(id: string, { hash, recipe }: { readonly hash: string; readonly recipe: string }): readonly Reason[] {
    const itself = this.stories.get(`config.${hash}`);
    const story = itself ?? this.stories.get(`recipe.${recipe}`);
    if (story === undefined) return [];
    return [reasonFor({ fragment: id, field: 'spec' }, 'known-bad', knownBadWords(story, itself !== undefined))];
  }
}

/** For callers that need neither hash nor recipe: nothing is stored under them. */
export const NO_DIGEST: Digest = () => '';
