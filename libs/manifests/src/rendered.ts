import { fragmentId, type ConfigEntry, type Reason } from '#libs/contracts';
import { inside, problemsOfSpec, reasonsOf } from './manifest.js';
import { jsonProblems } from './json-form.js';
import { KINDS, kindOf } from './kinds/registry.js';

/** Checks a rendered fragment in full: now that no template is left, every form must hold. */
export function checkRendered(entry: ConfigEntry): readonly Reason[] {
  const fragment = fragmentId(entry);
  const form = jsonProblems(entry.spec);
  if (form.length > 0) return reasonsOf(fragment, inside('spec', form));
  const kind = kindOf(entry.kind);
  if (kind === undefined || kind.role === 'policy') {
    const known = KINDS.filter(({ role }) => role === 'state')
      .map(({ name }) => name)
      .join(', ');
    return reasonsOf(fragment, [
      { at: 'kind', code: 'unknown-kind', message: `a node has no such kind; known are ${known}` },
    ]);
  }
  if (Object.hasOwn(entry.spec, 'nodeSelector')) {
    return reasonsOf(fragment, [
      { at: 'spec.nodeSelector', code: 'unknown-field', message: 'a rendered fragment selects nothing any more' },
    ]);
  }
  return reasonsOf(fragment, inside('spec', problemsOfSpec(kind, { ...entry.spec, nodeSelector: {} }, 'rendered')));
}
