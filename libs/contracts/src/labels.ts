/** The keys that Kubernetes allows for labels: a name of at most 63 characters, after an optional DNS name and "/". */
export const LABEL_KEY =
  /^(?=([^/]{1,253}\/)?[^/]*$)([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
/** The values that Kubernetes allows for labels. */
export const LABEL_VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

const NAME = 'at most 63 letters, digits, "-", "_" and ".", starting and ending with a letter or digit';
export const LABEL_KEY_MESSAGE = `must be a label key as in Kubernetes: ${NAME}; a DNS name and "/" may come before it`;
export const LABEL_VALUE_MESSAGE = `must be a label value as in Kubernetes: ${NAME}; or empty`;

/** What is wrong with a label; undefined if Kubernetes would allow it. */
export function labelProblem(key: string, value: string): string | undefined {
  if (!LABEL_KEY.test(key)) return `the key of the label ${JSON.stringify(key)} ${LABEL_KEY_MESSAGE}`;
  if (LABEL_VALUE.test(value)) return undefined;
  return `the value of the label ${key} ${LABEL_VALUE_MESSAGE}, but is ${JSON.stringify(value)}`;
}
