const DNS_SUBDOMAIN = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$/;
/** Names of pools and sources, which are tokens of subjects. */
export const DNS_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
export const HASH_PATTERN = /^[0-9a-f]{64}$/;
export const CHANGE_ID_PATTERN = /^c[1-9][0-9]{0,15}$/;

/** Names of fragments. */
export const isDnsSubdomain = (text: string): boolean => DNS_SUBDOMAIN.test(text);
/** Names of nodes are DNS subdomains; a dot would split a subject token, and `_` never occurs in them. */
export const isNodeName = isDnsSubdomain;
export const isDnsLabel = (text: string): boolean => DNS_LABEL.test(text);
export const isHash = (text: string): boolean => HASH_PATTERN.test(text);
export const isChangeId = (text: string): boolean => CHANGE_ID_PATTERN.test(text);

/** A node's name as one subject token or key: `w-1.dc1` is `w-1_dc1`. Reversible. */
export const nodeToken = (node: string): string => node.replaceAll('.', '_');
export const nodeOfToken = (token: string): string => token.replaceAll('_', '.');

/** The id of the change that has this sequence in the stream CHANGES. */
export const changeId = (sequence: number): string => `c${sequence}`;
/** The sequence in CHANGES of a change: the order in which changes are accepted. */
export const changeSequence = (change: string): number => Number(change.slice(1));
/** Orders change ids by age. */
export const byAge = (a: string, b: string): number => changeSequence(a) - changeSequence(b);
/** How reasons name a fragment. */
export const fragmentId = (fragment: { readonly kind: string; readonly name: string }): string =>
  `${fragment.kind}/${fragment.name}`;
