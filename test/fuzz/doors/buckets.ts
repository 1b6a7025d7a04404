import { CONFIGS, LEADERS, SERVICES, SNAPSHOTS, TARGETS, VIEW_BUCKETS } from '#libs/contracts';
import type { Chance } from '../../simulation/world/chance.js';
import { junk, type Example } from '../junk.js';

/** What stands in a bucket: subjects of values, as they are before the edit. */
export type BucketContents = Readonly<Record<string, readonly { readonly subject: string; readonly value: Buffer }[]>>;

/** One write by hand, past the owner of the bucket. */
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
/** Values and foreign keys; of configs and targets what is named by facts is left, as nobody could make it again. */
const EDITED = [...VIEW_BUCKETS, 'poison'];
const FOREIGN_ONLY = [CONFIGS, TARGETS, LEADERS];

/**
 * A value that somebody put, deleted, purged, cut or mixed up by hand. None shows more than the ledger has: that stops
 * all by design.
 */
export function edit(chance: Chance, standing: BucketContents): Edit {
  if (chance.happens(0.1)) return snapshotEdit(chance, standing[SNAPSHOTS] ?? []);
  const bucket = chance.pick([...EDITED, ...EDITED, ...FOREIGN_ONLY]);
  const entries = FOREIGN_ONLY.includes(bucket) ? [] : (standing[bucket] ?? []);
  if (entries.length === 0 || chance.happens(0.4))
    return {
      what: `a foreign key in ${bucket}`,
      subject: `$KV.${bucket}.${chance.pick(FOREIGN_KEYS)}`,
      body: junk(chance, VALUE).body,
    };
  const { subject, value } = chance.pick(entries);
  const other = chance.pick(Object.values(standing).flat());
  return chance.pick<Edit>([
    { what: 'junk', subject, body: junk(chance, VALUE).body },
    {
      what: 'a sequence that is none',
      subject,
      body: Buffer.from(`{"ledger":${chance.pick(['"9"', '"Infinity"', '-1', 'null', '{}', 'true', '[9]', '0.5'])}}`),
    },
    { what: "another bucket's value", subject, body: other.value },
    { what: 'a cut value', subject, body: value.subarray(0, chance.whole(0, value.length - 1)) },
    { what: 'a deleted key', subject, body: Buffer.alloc(0), headers: { 'KV-Operation': 'DEL' } },
    {
      what: 'a purged key',
      subject,
      body: Buffer.alloc(0),
      headers: { 'KV-Operation': 'PURGE', 'Nats-Rollup': 'sub' },
    },
    { what: 'an operation that is none', subject, body: value, headers: { 'KV-Operation': 'FROB' } },
  ]);
}

/**
 * The descriptions and pieces of snapshots, which only a start reads: of one that stands, or of one that nobody wrote.
 */
function snapshotEdit(chance: Chance, standing: BucketContents[string]): Edit {
  const name = `${chance.pick(SERVICES)}.v${chance.whole(1, 9)}.${chance.pick(['a', 'b', 'c', 'd', 'e', 'f'])}`;
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
  const known = standing.length === 0 || chance.happens(0.3) ? undefined : chance.pick(standing);
  const subject = known?.subject ?? `$O.${SNAPSHOTS}.M.${Buffer.from(name).toString('base64url')}`;
  const nuid = /"nuid":"(\w+)"/.exec(known?.value.toString() ?? '')?.[1] ?? 'fuzz';
  return chance.pick<() => Edit>([
    () => ({ what: 'the description of a snapshot', subject, body: junk(chance, meta).body }),
    () => ({ what: 'the description of a snapshot', subject, body: Buffer.from(JSON.stringify(meta)) }),
    () => ({ what: 'a piece of a snapshot', subject: `$O.${SNAPSHOTS}.C.${nuid}`, body: junk(chance, meta).body }),
  ])();
}
