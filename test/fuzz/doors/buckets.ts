import { CONFIGS, LEADERS, SERVICES, SNAPSHOTS, TARGETS, VIEW_BUCKETS } from '#libs/contracts';
import type { Chance } from '../../simulation/world/chance.js';
import { junk, type Example } from '../junk.js';

/** The subjects and values in each bucket, before the edit. */
export type BucketContents = Readonly<Record<string, readonly { readonly subject: string; readonly value: Buffer }[]>>;

/** One manual write that bypasses the owner of the bucket. */
export interface Edit {
  readonly what: string;
  readonly subject: string;
  readonly body: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

const FOREIGN_KEYS = [
  'foreign',
  '__proto__',
  'constructor',
  'a.b.c',
  'UPPER',
  'c0',
  'c999999',
  'x'.repeat(200),
  'edge-99_dc1',
];
const VALUE: Example = {
  node: 'foreign',
  change: 'c1',
  pool: 'p',
  phase: 'rolling',
  state: 'ready',
  labels: {},
  reasons: [],
  lease: 'l',
  applyMs: 5,
};
/**
 * Values and foreign keys. Configs and targets that facts name are left alone, because nothing could create them again.
 */
const EDITED = [...VIEW_BUCKETS, 'poison'];
const FOREIGN_ONLY = [CONFIGS, TARGETS, LEADERS];

/**
 * A value that was written, deleted, purged, truncated or mixed up by hand. No value shows a higher sequence than the
 * ledger has, because by design that stops everything.
 */
export function edit(chance: Chance, contents: BucketContents): Edit {
  if (chance.flip(0.1)) return snapshotEdit(chance, contents[SNAPSHOTS] ?? []);
  const bucket = chance.pick([...EDITED, ...EDITED, ...FOREIGN_ONLY]);
  const entries = FOREIGN_ONLY.includes(bucket) ? [] : (contents[bucket] ?? []);
  if (entries.length === 0 || chance.flip(0.4))
    return {
      what: `a foreign key in ${bucket}`,
      subject: `$KV.${bucket}.${chance.pick(FOREIGN_KEYS)}`,
      body: junk(chance, VALUE).body,
    };
  const { subject, value } = chance.pick(entries);
  const other = chance.pick(Object.values(contents).flat());
  return chance.pick<Edit>([
    { what: 'junk', subject, body: junk(chance, VALUE).body },
    {
      what: 'an invalid sequence',
      subject,
      body: Buffer.from(`{"ledger":${chance.pick(['"9"', '"Infinity"', '-1', 'null', '{}', 'true', '[9]', '0.5'])}}`),
    },
    { what: "another bucket's value", subject, body: other.value },
    { what: 'a cut value', subject, body: value.subarray(0, chance.integer(0, value.length - 1)) },
    { what: 'a deleted key', subject, body: Buffer.alloc(0), headers: { 'KV-Operation': 'DEL' } },
    {
      what: 'a purged key',
      subject,
      body: Buffer.alloc(0),
      headers: { 'KV-Operation': 'PURGE', 'Nats-Rollup': 'sub' },
    },
    { what: 'an invalid operation', subject, body: value, headers: { 'KV-Operation': 'FROB' } },
  ]);
}

/**
 * The descriptions and chunks of snapshots, which are only read at a start: of an existing snapshot, or of one that was
 * never written.
 */
function snapshotEdit(chance: Chance, contents: BucketContents[string]): Edit {
  const name = `${chance.pick(SERVICES)}.v${chance.integer(1, 9)}.${chance.pick(['a', 'b', 'c', 'd', 'e', 'f'])}`;
  const meta: Example = {
    name,
    nuid: 'fuzz',
    size: 10,
    chunks: 1,
    digest: 'SHA-256=',
    bucket: SNAPSHOTS,
    mtime: '',
    metadata: { sequence: '1' },
    deleted: false,
  };
  const known = contents.length === 0 || chance.flip(0.3) ? undefined : chance.pick(contents);
  const subject = known?.subject ?? `$O.${SNAPSHOTS}.M.${Buffer.from(name).toString('base64url')}`;
  const nuid = /"nuid":"(\w+)"/.exec(known?.value.toString() ?? '')?.[1] ?? 'fuzz';
  return chance.pick<() => Edit>([
    () => ({ what: 'the description of a snapshot', subject, body: junk(chance, meta).body }),
    () => ({ what: 'the description of a snapshot', subject, body: Buffer.from(JSON.stringify(meta)) }),
    () => ({ what: 'a piece of a snapshot', subject: `$O.${SNAPSHOTS}.C.${nuid}`, body: junk(chance, meta).body }),
  ])();
}
