import { UsageError } from './exit.js';

const KEY = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/;

/** Labels as Kubernetes has them, from `--label K=V` given several times. */
export function parseLabels(texts: readonly string[]): Readonly<Record<string, string>> {
  const labels: Record<string, string> = {};
  for (const text of texts) {
    const at = text.indexOf('=');
    const [key, value] = [text.slice(0, Math.max(0, at)), text.slice(at + 1)];
    if (at < 1 || !KEY.test(key) || key.length > 317)
      throw new UsageError(`--label: ${JSON.stringify(text)} is not a label; write it as in zone=a`);
    if (!VALUE.test(value) || value.length > 63)
      throw new UsageError(
        `--label ${key}: ${JSON.stringify(value)} is not a value: at most 63 letters, digits, "-", "_" and "."`,
      );
    if (Object.hasOwn(labels, key) && labels[key] !== value)
      throw new UsageError(`--label ${key} is given twice, as ${labels[key]} and ${value}`);
    labels[key] = value;
  }
  return labels;
}
