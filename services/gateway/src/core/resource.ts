import { fragmentId, reasonFor, type Fragment, type Reason } from '#libs/contracts';
import { checkManifest, manifestOf, MAX_CHANGE_BYTES, utf8Bytes } from '#libs/manifests';
import { canonicalJson } from '#libs/rules';

/** The finalizer: it keeps an object until the change that removes it from the nodes has succeeded. */
export const FINALIZER = 'sluice.dev/rollout';
/** Names a change that failed, to publish again what was refused in it. */
export const RETRY = 'sluice.dev/retry';
/** With the value `true`: the object takes its fragment over from the source that it belongs to. */
export const TAKE_OVER = 'sluice.dev/take-over';

export interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly observedGeneration: number;
  readonly lastTransitionTime: string;
  readonly reason: string;
  readonly message: string;
}

/** `status` as the gateway writes it: counts, messages and conditions. */
export type Status = Readonly<Record<string, unknown>> & {
  readonly observedGeneration?: number;
  readonly conditions?: readonly Condition[];
};

/** An object of the API server, as it was received. */
export interface ObservedObject {
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
  readonly revision: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: unknown;
  readonly deleting: boolean;
  readonly finalizers: readonly string[];
  readonly retry: string;
  readonly takeOver?: boolean;
  readonly status: Status | undefined;
}

/** The same, with what follows from it. */
export interface Resource extends ObservedObject {
  /** `Kind/name`, as reasons name it. */
  readonly id: string;
  /** The digest of what would be published. */
  readonly hash: string;
  /** Why it cannot be published at all. */
  readonly problems: readonly Reason[];
  readonly bytes: number;
}

export type Digest = (text: string) => string;

/** The digest of a fragment, the same for an object and a published change. */
export const hashOf = (
  fragment: { readonly kind: string; readonly name: string; readonly labels: unknown; readonly spec?: unknown },
  digest: Digest,
): string =>
  digest(
    canonicalJson({ kind: fragment.kind, name: fragment.name, labels: fragment.labels, spec: fragment.spec ?? {} }),
  );

/** Space for the rest of a change. */
const MOST_BYTES = MAX_CHANGE_BYTES - 4_096;

/** Why an object alone is too large for a change. */
function sizeReasons(object: Content): readonly Reason[] {
  const bytes = utf8Bytes(JSON.stringify(manifestOf(object)));
  if (bytes <= MOST_BYTES) return [];
  const message = `the object has ${bytes} bytes; the limit is ${MOST_BYTES}`;
  return [reasonFor({ fragment: fragmentId(object) }, 'too-large', message)];
}

/** What of an object is published. */
export type Content = Pick<ObservedObject, 'kind' | 'name' | 'labels' | 'spec'>;

/** The fragment of an object, or every reason why it has none. The checks are those of the merger. */
export function checkObject(
  content: Content,
): { readonly fragment: Fragment } | { readonly reasons: readonly Reason[] } {
  const checked = checkManifest(manifestOf(content), `${content.kind}/${content.name}`);
  if (!checked.ok) return { reasons: checked.reasons };
  const large = sizeReasons(content);
  return large.length > 0 ? { reasons: large } : { fragment: checked.fragment };
}

/** The same for callers that do not need the reasons. */
export function fragmentOfObject(content: Content): Fragment | undefined {
  const checked = checkObject(content);
  return 'fragment' in checked ? checked.fragment : undefined;
}

/** Reads an object. One that cannot be published delays no other. */
export function resourceOf(object: ObservedObject, digest: Digest): Resource {
  const bytes = utf8Bytes(JSON.stringify(manifestOf(object)));
  const checked = checkObject(object);
  const [hash, problems] = 'reasons' in checked ? ['', checked.reasons] : [hashOf(object, digest), []];
  return { ...object, id: `${object.kind}/${object.name}`, bytes, hash, problems };
}
