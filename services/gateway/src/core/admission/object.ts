import type { Fragment, Reason } from '#libs/contracts';
import { checkManifest } from '#libs/manifests';
import { manifestOf, sizeReasons, type Heard } from '../resource.js';

/** What of an object is published. */
export type Content = Pick<Heard, 'kind' | 'name' | 'labels' | 'spec'>;

/** The fragment that an object says, or every reason why it says none: what its status would say, too. */
export function checkObject(
  content: Content,
): { readonly fragment: Fragment } | { readonly reasons: readonly Reason[] } {
  const manifest = manifestOf(content);
  const checked = checkManifest(manifest, `${content.kind}/${content.name}`);
  if (!checked.ok) return { reasons: checked.reasons };
  const large = sizeReasons(content);
  return large.length > 0 ? { reasons: large } : { fragment: checked.fragment };
}

/** The same where the reasons are of no interest. */
export function fragmentOfObject(content: Content): Fragment | undefined {
  const checked = checkObject(content);
  return 'fragment' in checked ? checked.fragment : undefined;
}
