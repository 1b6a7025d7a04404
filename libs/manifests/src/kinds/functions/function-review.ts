import { fragmentId, reasonFor, type Config, type Reason } from '#libs/contracts';
import { functionKindOf, namedIn } from './table.js';

/**
 * Every reference between the function objects of a node that leads nowhere. Names of invalid fragments count, so that
 * one error is not reported as two.
 */
export function functionReasons({ fragments }: Config): readonly Reason[] {
  const names = new Set(fragments.map(fragmentId));
  return fragments.flatMap((entry) => {
    const kind = functionKindOf(entry.kind);
    if (kind === undefined) return [];
    return namedIn(kind.fields, entry.spec).flatMap(({ field, at, name }): Reason[] => {
      if (field.refersTo === undefined) return [];
      const needs = `${field.refersTo}/${name}`;
      if (names.has(needs)) return [];
      const where = { fragment: fragmentId(entry), field: `spec.${at}` };
      return [{ ...reasonFor(where, 'missing-reference', `the node has no ${needs}`), needs }];
    });
  });
}
