import { isUtf8 } from 'node:buffer';
import { contentOf, type Contents } from './data-url.js';
import { CONTENT_FIELDS, DROP_IN, type Entry } from './ignition.js';
import { literal, type Fields, type ImportReport } from './import-report.js';

/** Adds the fragment of a merged entry, if there is one, and reports what is unsupported. */
export function addEntry(entry: Entry, nodeSelector: Fields, report: ImportReport): void {
  const at = `${entry.where} ${entry.name}`;
  if (!entry.isWhole) {
    report.skip(at, 'it has an unsupported or malformed field');
    return;
  }
  const { kind, make } = MAKERS[entry.kind];
  const spec = make(entry, at, report);
  if (spec !== undefined) report.add(kind, `${entry.config}-${entry.name}`, { nodeSelector, ...literal(spec) });
}

type Maker = (entry: Entry, at: string, report: ImportReport) => Fields | undefined;

const MAKERS: Readonly<Record<Entry['kind'], { readonly kind: string; readonly make: Maker }>> = {
  file: { kind: 'File', make: fileOf },
  directory: { kind: 'Directory', make: directoryOf },
  link: { kind: 'Link', make: linkOf },
  unit: { kind: 'SystemdUnit', make: unitOf },
};

function fileOf(entry: Entry, at: string, report: ImportReport): Fields | undefined {
  const contents: Contents = Object.fromEntries(
    Object.entries(CONTENT_FIELDS).flatMap(([field, name]) => textOf(entry, field).map((text) => [name, text])),
  );
  if (entry.appended.length > 0 && contents.source === undefined) {
    // What they are appended to exists only on the node, and a file with only the appended part would replace it.
    report.skip(at, 'append is only supported after contents');
    return undefined;
  }
  const parts: Buffer[] = [];
  for (const content of [contents, ...entry.appended].map(contentOf)) {
    if (!content.ok) {
      report.skip(at, content.why);
      return undefined;
    }
    parts.push(content.bytes);
  }
  return { path: entry.name, ...encoded(Buffer.concat(parts)), ...modeOf(entry), ...ownerOf(entry) };
}

/** As text if it is UTF-8. */
const encoded = (bytes: Buffer): Fields =>
  isUtf8(bytes) ? { content: bytes.toString() } : { content: bytes.toString('base64'), encoding: 'base64' };

function directoryOf(entry: Entry): Fields {
  return { path: entry.name, ...modeOf(entry), ...ownerOf(entry) };
}

function linkOf(entry: Entry, at: string, report: ImportReport): Fields | undefined {
  const [target] = textOf(entry, 'target');
  const isHard = entry.fields.get('hard')?.value === true;
  if (!isHard && target !== undefined) return { path: entry.name, target };
  report.skip(at, isHard ? 'hard links are not supported' : 'it has no target');
  return undefined;
}

function unitOf(entry: Entry, at: string, report: ImportReport): Fields | undefined {
  const { name, fields } = entry;
  const [content = ''] = textOf(entry, 'content');
  const enabled = fields.get('enabled')?.value;
  const mask = fields.get('mask');
  // An empty one removes that of an earlier MachineConfig, and MCO does not write it.
  const dropIns = [...fields]
    .filter(([field, { value }]) => field.startsWith(DROP_IN) && value !== '')
    .map(([field, content]) => ({ name: field.slice(DROP_IN.length), content: content.value }));
  if (mask?.value === true)
    report.say(`${mask.where} ${name}`, 'unsupported field mask: imported as a unit that is disabled and stopped');
  const masked = mask?.value === true ? { enabled: false, state: 'stopped' } : {};
  const spec = {
    ...(content === '' ? {} : { content }),
    ...(dropIns.length > 0 ? { dropIns } : {}),
    ...(enabled === undefined ? {} : { enabled }),
    ...masked,
  };
  if (Object.keys(spec).length > 0) return { name, ...spec };
  report.skip(at, 'it has no supported field');
  return undefined;
}

const textOf = ({ fields }: Entry, field: string): readonly string[] =>
  [fields.get(field)?.value].filter((value) => typeof value === 'string');

/** Ignition has modes as numbers. */
function modeOf({ fields }: Entry): Fields {
  const mode = fields.get('mode')?.value;
  return typeof mode === 'number' ? { mode: mode.toString(8).padStart(4, '0') } : {};
}

/** Ignition takes the id if it has both. */
function ownerOf({ fields }: Entry): Fields {
  const idOf = (field: string): unknown => fields.get(`${field}.id`)?.value ?? fields.get(`${field}.name`)?.value;
  return Object.fromEntries(
    (
      [
        ['owner', idOf('user')],
        ['group', idOf('group')],
      ] as const
    ).flatMap(([field, value]) => (value === undefined ? [] : [[field, String(value)]])),
  );
}
