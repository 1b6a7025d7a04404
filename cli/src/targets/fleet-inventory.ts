import { createHash } from 'node:crypto';
import {
  LabelMap,
  isObject,
  NestedList,
  NODE_NAME,
  Optional,
  Ruled,
  SHORT_NAME,
  SOURCE_NAME,
  Text,
  Flag,
  type Problem,
} from '#libs/manifests';
import { connectTarget } from '#libs/nats/lean';
import type { OtherFleet } from '../../../services/applier/src/shell/targets/index.js';
import { readBounded } from '../input/bounded-file.js';
import { UsageError } from '../output/exit.js';
import { readInventoryFile, type FileListing } from './inventory-file.js';

const EXAMPLE = `fleets:
  - name: europe
    server: tls://nats.europe.example:4222
    creds: europe.creds
    labels: { tier: region }`;

/** The source of what a hub publishes, if its entry names none. */
const SOURCE = 'hub';
const FILES = ['creds', 'nkey', 'passwordFile', 'tokenFile', 'tlsCa', 'tlsCert', 'tlsKey'] as const;

/** Another fleet. How to connect is written as in the flags of the CLI. */
class FleetEntry {
  @Text(NODE_NAME) readonly name!: string;
  @Text() readonly server!: string;
  @Optional() @LabelMap() readonly labels?: Readonly<Record<string, string>>;
  @Optional() @Text(SOURCE_NAME) readonly source?: string;
  @Optional() @Text() readonly creds?: string;
  @Optional() @Text() readonly nkey?: string;
  @Optional() @Text() readonly user?: string;
  @Optional() @Text() readonly passwordFile?: string;
  @Optional() @Text() readonly tokenFile?: string;
  @Optional() @Text() readonly tlsCa?: string;
  @Optional() @Text() readonly tlsCert?: string;
  @Optional() @Text() readonly tlsKey?: string;
  @Optional() @Flag() readonly tlsFirst?: boolean;
  @Optional() @Text() readonly inboxPrefix?: string;
}

/** The fleets that an applier serves; each name and each server once. */
@Ruled({ problems: ({ fleets }) => (Array.isArray(fleets) ? problemsOf(fleets) : []), schema: {} })
class FleetInventory {
  @Optional() @Text(SHORT_NAME) readonly name?: string;
  @NestedList(() => FleetEntry) readonly fleets!: readonly FleetEntry[];
}

/**
 * Reads a YAML or JSON file that lists other fleets. Paths in it are relative to its folder. Throws UsageError with
 * every reason. Calls `uses` with each file that an entry refers to.
 */
export function readFleets(file: string, uses: (path: string) => void = () => undefined): FileListing<OtherFleet> {
  const { value, place, pathOf } = readInventoryFile(file, { type: FleetInventory, example: EXAMPLE });
  const entries = value.fleets.map(({ name, labels = {}, source = SOURCE, ...flags }, i) => {
    const at = `${place}: fleets[${i}]`;
    const files = FILES.flatMap((field) =>
      flags[field] === undefined ? [] : [[field, pathOf(flags[field])] as const],
    );
    const digest = createHash('sha256');
    for (const [field, path] of files) {
      uses(path);
      digest.update(readBounded(path, `${at}.${field}: ${path}`));
    }
    try {
      const connection = connectTarget({ ...flags, ...Object.fromEntries(files) }, { HOME: process.env['HOME'] });
      return { name, labels, source, connection, files: digest.digest('hex') };
    } catch (error) {
      if ((error as Error).name !== 'SettingsError') throw error;
      throw new UsageError(`${at}: ${(error as Error).message}`);
    }
  });
  return { name: value.name, entries };
}

/** What tells entries apart. Two entries for one fleet would both publish there. */
function problemsOf(entries: readonly unknown[]): readonly Problem[] {
  return (['name', 'server'] as const).flatMap((field) => {
    const values = entries.map((entry) => (isObject(entry) ? entry[field] : undefined));
    return values.flatMap((value, i): readonly Problem[] => {
      const first = values.indexOf(value);
      if (value === undefined || first === i) return [];
      const message = `is the same as in fleets[${first}]: ${JSON.stringify(value)}`;
      return [{ at: `fleets[${i}].${field}`, code: 'twice', message }];
    });
  });
}
