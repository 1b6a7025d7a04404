import { createHash } from 'node:crypto';
import type { Chance } from '../../simulation/world/chance.js';

/** The files of an applier's state folder, by path. */
export type Folder = Readonly<Record<string, Buffer>>;

export interface EditedFolder {
  readonly what: string;
  readonly files: Folder;
}

const VALUES: readonly unknown[] = [
  null,
  true,
  -1,
  1e308,
  'text',
  '__proto__',
  [],
  [null],
  {},
  { a: 1 },
  { phase: 'sideways' },
  '0'.repeat(64),
  { '/etc/x': 7 },
  { 'File:/etc/x': { kind: 'File' } },
];
const FIELDS = [
  'v',
  'node',
  'incarnation',
  'nonce',
  'seq',
  'inForce',
  'sound',
  'lastDealt',
  'work',
  'originals',
  'report',
  '__proto__',
  'constructor',
  'unknown',
];

/** A state folder that was cut off during a write, or edited by hand. */
export function editFolder(chance: Chance, files: Folder): EditedFolder {
  const journals = Object.keys(files).filter((name) => name.startsWith('journal'));
  const one = chance.pick(journals);
  const configs = Object.keys(files).filter((name) => name.startsWith('configs/'));
  const text = (files[one] as Buffer).toString();
  const edited = (what: string, changes: Record<string, Buffer>): EditedFolder => ({
    what,
    files: { ...files, ...changes },
  });
  const all = (make: (content: Buffer) => Buffer): Record<string, Buffer> =>
    Object.fromEntries(journals.map((name) => [name, make(files[name] as Buffer)]));
  return chance.pick<() => EditedFolder>([
    () => edited(`${one} is cut`, { [one]: cut(chance, files[one] as Buffer) }),
    () =>
      edited(
        'all journals are cut',
        all((content) => cut(chance, content)),
      ),
    () => edited(`${one} is empty`, { [one]: Buffer.alloc(0) }),
    () => edited(`${one} is NUL bytes`, { [one]: Buffer.alloc(text.length) }),
    () => edited(`a byte of ${one} is another`, { [one]: flipped(chance, files[one] as Buffer) }),
    () => edited(`${one} is deep`, { [one]: sealed('['.repeat(100_000)) }),
    () => {
      const field = chance.pick(FIELDS);
      const value = chance.pick(VALUES);
      return edited(
        `${field} is ${JSON.stringify(value)} in all journals, by hand`,
        all((content) => sealed(withField(content, field, value))),
      );
    },
    () =>
      edited(
        'a config is junk',
        Object.fromEntries(
          configs.map((name) => [name, Buffer.from(chance.pick(['', '{', '{"fragments": 7}', 'null']))]),
        ),
      ),
    () =>
      edited('the lock is junk', {
        lock: Buffer.from(
          chance.pick(['', 'x', '{"pid": 1}', '{"pid": "x"}', '[]', 'null', '{"pid": -1, "started": ""}']),
        ),
      }),
    () =>
      edited('what was begun lies next to it', {
        'journal.json.tmp': cut(chance, files[one] as Buffer),
        'journal.prev.json.new': Buffer.from('x'),
        'configs/foreign': Buffer.from('x'),
        'originals/foreign': Buffer.from('x'),
      }),
  ])();
}

const cut = (chance: Chance, content: Buffer): Buffer => content.subarray(0, chance.integer(0, content.length - 1));

function flipped(chance: Chance, content: Buffer): Buffer {
  const copy = Buffer.from(content);
  const at = chance.integer(0, copy.length - 1);
  copy[at] = (copy[at] as number) ^ (1 << chance.integer(0, 7));
  return copy;
}

function withField(content: Buffer, field: string, value: unknown): string {
  const { journal } = JSON.parse(content.toString()) as { readonly journal: Readonly<Record<string, unknown>> };
  const rest = Object.entries(journal)
    .filter(([key]) => key !== field)
    .map(([key, kept]) => `${JSON.stringify(key)}:${JSON.stringify(kept)}`);
  return `{${[...rest, `${JSON.stringify(field)}:${JSON.stringify(value)}`].join(',')}}`;
}

/** With the right digest, as a person would write it to pass the check. */
const sealed = (text: string): Buffer =>
  Buffer.from(`{"sha256":"${createHash('sha256').update(text).digest('hex')}","journal":${text}}\n`);
