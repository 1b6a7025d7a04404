import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parseDocument } from 'yaml';
import {
  isObject,
  LabelMap,
  NestedList,
  NODE_NAME,
  Optional,
  patternForm,
  readShape,
  Ruled,
  Text,
  type Problem,
} from '#libs/manifests';
import type { FunctionReplica } from '../../../services/applier/src/shell/targets/index.js';
import { readBounded, textOf } from '../input/bounded-file.js';
import { UsageError } from '../output/exit.js';

/** LuCI is below this path of a replica. */
const LUCI = '/cgi-bin/luci';
const EXAMPLE = `functions:
  - name: cnf-1
    url: https://10.0.0.7
    labels: { purpose: edge }
    passwordFile: cnf-1.password
    caFile: ca.pem`;

const URL_FORM = patternForm(
  'bad-url',
  /^https?:\/\/[^/\s?#@]+(\/[^\s?#]*)?$/,
  'must be an http or https URL without a user and without ? or #, such as "https://10.0.0.7"',
);

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
  @NestedList(() => FunctionEntry) readonly functions!: readonly FunctionEntry[];
}

/**
 * Reads a YAML or JSON file with the replicas of network functions. Paths in it are relative to its folder. Throws
 * UsageError with every reason.
 */
export function readFunctions(file: string): readonly FunctionReplica[] {
  const place = `--inventory ${file}`;
  const document = parseDocument(textOf(readBounded(file, place), file), { prettyErrors: true });
  const [error] = document.errors;
  if (error !== undefined) throw new UsageError(`${place} is not valid YAML: ${error.message}`);
  const { value, problems } = readShape(FunctionInventory, document.toJS());
  if (problems.length > 0) {
    const lines = problems.map(({ at, message }) => `${place}: ${at === '' ? '' : `${at}: `}${message}`);
    throw new UsageError([...lines, 'The file looks like this:', EXAMPLE].join('\n'));
  }
  const folder = dirname(file);
  return value.functions.map(({ name, url, labels = {}, user = 'root', passwordFile, caFile }, i) => ({
    name,
    labels,
    baseUrl: baseUrlOf(url),
    user,
    password: contentOf(resolve(folder, passwordFile), `${place}: functions[${i}].passwordFile`).trim(),
    ...(caFile === undefined ? {} : { ca: contentOf(resolve(folder, caFile), `${place}: functions[${i}].caFile`) }),
  }));
}

const baseUrlOf = (url: string): string => {
  const plain = url.replace(/\/+$/, '');
  return new URL(plain).pathname === '/' ? `${plain}${LUCI}` : plain;
};

function contentOf(path: string, place: string): string {
  try {
    const text = readFileSync(path, 'utf8');
    if (text.trim() !== '') return text;
  } catch (error) {
    throw new UsageError(`${place}: ${(error as Error).message}`);
  }
  throw new UsageError(`${place}: ${path} is empty`);
}

/** Two entries with one URL would both change the same replica. */
function problemsOf(entries: readonly unknown[]): readonly Problem[] {
  return (['name', 'url'] as const).flatMap((field) => {
    const values = entries.map((entry) => (isObject(entry) ? entry[field] : undefined));
    return values.flatMap((value, i): readonly Problem[] => {
      const first = values.indexOf(value);
      if (value === undefined || first === i) return [];
      return [
        {
          at: `functions[${i}].${field}`,
          code: 'twice',
          message: `is the same as in functions[${first}]: ${JSON.stringify(value)}`,
        },
      ];
    });
  });
}
