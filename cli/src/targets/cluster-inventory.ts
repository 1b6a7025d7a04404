import { dirname, resolve } from 'node:path';
import { parseDocument } from 'yaml';
import {
  isObject,
  LabelMap,
  NestedList,
  NODE_NAME,
  Optional,
  readShape,
  Ruled,
  SHORT_NAME,
  Text,
  type Problem,
} from '#libs/manifests';
import type { Cluster } from '../../../services/applier/src/shell/targets/index.js';
import { readBounded, textOf } from '../input/bounded-file.js';
import { UsageError } from '../output/exit.js';
import type { FileListing } from './inventory-file.js';

const EXAMPLE = `clusters:
  - name: prod-1
    labels: { stage: prod }
    kubeconfigFile: prod-1.kubeconfig`;

/** One Kubernetes cluster. */
class ClusterEntry {
  @Text(NODE_NAME) readonly name!: string;
  @Optional() @LabelMap() readonly labels?: Readonly<Record<string, string>>;
  @Text() readonly kubeconfigFile!: string;
}

/** The clusters that an applier serves; each name and each file once. */
@Ruled({ problems: ({ clusters }) => (Array.isArray(clusters) ? problemsOf(clusters) : []), schema: {} })
class ClusterInventory {
  @Optional() @Text(SHORT_NAME) readonly name?: string;
  @NestedList(() => ClusterEntry) readonly clusters!: readonly ClusterEntry[];
}

/**
 * Reads a YAML or JSON file with clusters. Paths in it are relative to its folder. Throws UsageError with every reason.
 * Calls `uses` with each file that a cluster refers to, before it reads that file.
 */
export function readClusters(file: string, uses: (path: string) => void = () => undefined): FileListing<Cluster> {
  const place = `--inventory ${file}`;
  const document = parseDocument(textOf(readBounded(file, place), file), { prettyErrors: true });
  const [error] = document.errors;
  if (error !== undefined) throw new UsageError(`${place} is not valid YAML: ${error.message}`);
  const { value, problems } = readShape(ClusterInventory, document.toJS());
  if (problems.length > 0) {
    const lines = problems.map(({ at, message }) => `${place}: ${at === '' ? '' : `${at}: `}${message}`);
    throw new UsageError([...lines, 'The file looks like this:', EXAMPLE].join('\n'));
  }
  const entries = value.clusters.map(({ name, labels = {}, kubeconfigFile }, i) => {
    const path = resolve(dirname(file), kubeconfigFile);
    uses(path);
    const label = `${place}: clusters[${i}].kubeconfigFile: ${path}`;
    const kubeconfig = textOf(readBounded(path, label), label);
    if (kubeconfig.trim() === '') throw new UsageError(`${label} is empty`);
    return { name, labels, kubeconfig };
  });
  return { name: value.name, entries };
}

/** What tells entries apart. Two nodes must not have one cluster. */
function problemsOf(entries: readonly unknown[]): readonly Problem[] {
  return (['name', 'kubeconfigFile'] as const).flatMap((field) => {
    const values = entries.map((entry) => (isObject(entry) ? entry[field] : undefined));
    return values.flatMap((value, i): readonly Problem[] => {
      const first = values.indexOf(value);
      if (value === undefined || first === i) return [];
      const message = `is the same as in clusters[${first}]: ${JSON.stringify(value)}`;
      return [{ at: `clusters[${i}].${field}`, code: 'twice', message }];
    });
  });
}
