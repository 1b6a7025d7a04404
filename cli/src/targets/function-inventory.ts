import { X509Certificate } from 'node:crypto';
import {
  isObject,
  LabelMap,
  NestedList,
  NODE_NAME,
  Optional,
  Ruled,
  SHORT_NAME,
  Text,
  type Problem,
  type TextForm,
} from '#libs/manifests';
import type { FunctionReplica } from '../../../services/applier/src/shell/targets/index.js';
import { readBounded, textOf } from '../input/bounded-file.js';
import { UsageError } from '../output/exit.js';
import { readInventoryFile, type FileListing } from './inventory-file.js';

/** LuCI is below this path of a replica. */
const LUCI = '/cgi-bin/luci';
const EXAMPLE = `functions:
  - name: cnf-1
    url: https://10.0.0.7
    labels: { purpose: edge }
    passwordFile: cnf-1.password
    caFile: ca.pem`;

const URL_PATTERN = /^https?:\/\/[^/\s?#@]+(\/[^\s?#]*)?$/;
const isUrl = (value: unknown): value is string =>
  typeof value === 'string' && URL_PATTERN.test(value) && URL.canParse(value);
const URL_FORM: TextForm = {
  code: 'bad-url',
  problem: (text) =>
    isUrl(text)
      ? undefined
      : 'must be an http or https URL without a user and without ? or #, such as "https://10.0.0.7"',
  schema: { pattern: URL_PATTERN.source },
};

/** One replica of a network function. */
class FunctionEntry {
  @Text(NODE_NAME) readonly name!: string;
  @Text(URL_FORM) readonly url!: string;
  @Optional() @LabelMap() readonly labels?: Readonly<Record<string, string>>;
  @Optional() @Text() readonly user?: string;
  @Text() readonly passwordFile!: string;
  @Optional() @Text() readonly caFile?: string;
}

/** The replicas that an applier serves; each name and each URL once. */
@Ruled({ problems: ({ functions }) => (Array.isArray(functions) ? problemsOf(functions) : []), schema: {} })
class FunctionInventory {
  @Optional() @Text(SHORT_NAME) readonly name?: string;
  @NestedList(() => FunctionEntry) readonly functions!: readonly FunctionEntry[];
}

/**
 * Reads a YAML or JSON file with the replicas of network functions. Paths in it are relative to its folder. Throws
 * UsageError with every reason. Calls `uses` with each file that a replica refers to, before it reads that file.
 */
export function readFunctions(
  file: string,
  uses: (path: string) => void = () => undefined,
): FileListing<FunctionReplica> {
  const { value, place, pathOf: wholeOf } = readInventoryFile(file, { type: FunctionInventory, example: EXAMPLE });
  const pathOf = (path: string): string => {
    const whole = wholeOf(path);
    uses(whole);
    return whole;
  };
  const entries = value.functions.map(({ name, url, labels = {}, user = 'root', passwordFile, caFile }, i) => ({
    name,
    labels,
    baseUrl: baseUrlOf(url),
    user,
    password: contentOf(pathOf(passwordFile), `${place}: functions[${i}].passwordFile`).trim(),
    ...(caFile === undefined ? {} : { ca: authorityOf(pathOf(caFile), `${place}: functions[${i}].caFile`) }),
  }));
  return { name: value.name, entries };
}

/** The same for each way to write it. */
const baseUrlOf = (url: string): string => {
  const plain = new URL(url).href.replace(/\/+$/, '');
  return new URL(plain).pathname === '/' ? `${plain}${LUCI}` : plain;
};

function contentOf(path: string, place: string): string {
  const label = `${place}: ${path}`;
  const text = textOf(readBounded(path, label), label);
  if (text.trim() === '') throw new UsageError(`${label} is empty`);
  return text;
}

/** If there is no certificate in it, Node.js trusts nobody, and does not say so. */
function authorityOf(path: string, place: string): string {
  const text = contentOf(path, place);
  try {
    void new X509Certificate(text);
    return text;
  } catch {
    throw new UsageError(`${place}: ${path} has no certificate: it must be PEM, as in -----BEGIN CERTIFICATE-----`);
  }
}

/** What tells entries apart. Two entries with one URL would both change the same replica. */
function problemsOf(entries: readonly unknown[]): readonly Problem[] {
  return (['name', 'url'] as const).flatMap((field) => {
    const values = entries.map((entry) => (isObject(entry) ? entry[field] : undefined));
    const keys = values.map((value) => (field === 'url' && isUrl(value) ? baseUrlOf(value) : value));
    return keys.flatMap((key, i): readonly Problem[] => {
      const first = keys.indexOf(key);
      if (key === undefined || first === i) return [];
      return [
        {
          at: `functions[${i}].${field}`,
          code: 'twice',
          message: `is the same as in functions[${first}]: ${JSON.stringify(values[first])}`,
        },
      ];
    });
  });
}
