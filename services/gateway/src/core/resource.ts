import { fragmentId, reasonFor, type Fragment, type Reason } from '#libs/contracts';
import { API_VERSION, checkManifest, MAX_CHANGE_BYTES, utf8Bytes } from '#libs/manifests';
import { canonicalJson } from '#libs/rules';

/** What keeps an object until the change that takes it off the nodes has succeeded. */
export const FINALIZER = 'sluice.dev/rollout';
/** Names a change that failed: what was refused in it is published again. */
export const RETRY = 'sluice.dev/retry';

export interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly observedGeneration: number;
  readonly lastTransitionTime: string;
  readonly reason: string;
  readonly message: string;
}

/** `status` as the gateway writes it: counts, words and conditions. */
export type Status = Readonly<Record<string, unknown>> & {
  readonly observedGeneration?: number;
  readonly conditions?: readonly Condition[];
};

/** An object of the API server, as it was heard. */
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
  readonly status: Status | undefined;
}

/** The same, with what follows from it. */
export interface Resource extends ObservedObject {
  /** `Kind/name`, as reasons name it. */
  readonly id: string;
  /** Of what would be published of it. */
  readonly hash: string;
  /** Why it cannot be published at all. */
  readonly problems: readonly Reason[];
  readonly bytes: number;
}

export type Digest = (text: string) => string;

/** The digest of a fragment, the same whether an object or a published change says it. */
export const hashOf = (
  fragment: { readonly kind: string; readonly name: string; readonly labels: unknown; readonly spec: unknown },
  digest: Digest,
): string =>
  digest(
    canonicalJson({ kind: fragment.kind, name: fragment.name, labels: fragment.labels, spec: fragment.spec ?? {} }),
  );

/** What is published of an object: the document as anybody would write it. */
export const manifestOf = ({ kind, name, labels, spec }: Content): object => ({
  apiVersion: API_VERSION,
  kind,
  metadata: { name, ...(Object.keys(labels).length === 0 ? {} : { labels }) },
  spec,
});

/** Room for what stands around it in a change. */
const MOST_BYTES = MAX_CHANGE_BYTES - 4_096;

/** Why an object is too large for a change, alone. */
function sizeReasons(object: Content): readonly Reason[] {
  const bytes = utf8Bytes(JSON.stringify(manifestOf(object)));
  if (bytes <= MOST_BYTES) return [];
  const message = `the object has ${bytes} bytes; the limit is ${MOST_BYTES}`;
  return [reasonFor({ fragment: fragmentId(object) }, 'too-large', message)];
}

/** What of an object is published. */
export type Content = Pick<ObservedObject, 'kind' | 'name' | 'labels' | 'spec'>;

/** The fragment that an object says, or every reason why it says none: it is checked as the merger would. */
export function checkObject(
  content: Content,
): { readonly fragment: Fragment } | { readonly reasons: readonly Reason[] } {
  const checked = checkManifest(manifestOf(content), `${content.kind}/${content.name}`);
  if (!checked.ok) return { reasons: checked.reasons };
  const large = sizeReasons(content);
  return large.length > 0 ? { reasons: large } : { fragment: checked.fragment };
}

/** The same where the reasons are of no interest. */
export function fragmentOfObject(content: Content): Fragment | undefined {
  const checked = checkObject(content);
  return 'fragment' in checked ? checked.fragment : undefined;
}

/** Reads an object; one that cannot be published holds up no other. */
export function resourceOf(heard: ObservedObject, digest: Digest): Resource {
  const bytes = utf8Bytes(JSON.stringify(manifestOf(heard)));
  const checked = checkObject(heard);
  const [hash, problems] = 'reasons' in checked ? ['', checked.reasons] : [hashOf(heard, digest), []];
  return { ...heard, id: `${heard.kind}/${heard.name}`, bytes, hash, problems };
}
