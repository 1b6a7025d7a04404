import { createHash } from 'node:crypto';
import { checkManifest, KINDS } from '#libs/manifests';
import { Chance } from '../simulation/world/chance.js';
import { edit } from './doors/buckets.js';
import { badChange, SPECS } from './doors/changes.js';
import { badFact } from './doors/facts.js';
import { hostileManifests } from './doors/hostile-trees.js';
import { badHeartbeat, badPush, badReport } from './doors/reports.js';
import { badRequest } from './doors/requests.js';
import { editFolder } from './doors/state-folders.js';
import { MAX_PAYLOAD } from './junk.js';

const NODES = ['edge-01.dc1', 'core-01.dc1'];
const STANDING = {
  pools: [{ subject: '$KV.pools.edge', value: Buffer.from('{"ledger":1}') }],
  nodes: [{ subject: '$KV.nodes.x', value: Buffer.from('{"ledger":2}') }],
};
const FOLDER = {
  'journal.json': Buffer.from('{"sha256":"0","journal":{"v":1}}\n'),
  'configs/x.json': Buffer.from('{}'),
};

const GENERATORS: Readonly<Record<string, (chance: Chance) => object>> = {
  changes: badChange,
  reports: (chance) => badReport(chance, NODES),
  heartbeats: (chance) => badHeartbeat(chance, NODES),
  pushes: (chance) => badPush(chance, NODES),
  requests: (chance) => badRequest(chance),
  facts: (chance) => badFact(chance),
  buckets: (chance) => edit(chance, STANDING),
  'state folders': (chance) => editFolder(chance, FOLDER),
};

describe.each(Object.entries(GENERATORS))('the generator of %s', (_name, generate) => {
  /** Shows digests instead of bodies, because bodies are large. */
  const series = (seed: number, count = 30): readonly object[] => {
    const chance = new Chance(seed, 'fuzz');
    return Array.from({ length: count }, () => {
      const one = generate(chance) as { readonly body?: Buffer };
      return one.body === undefined ? one : { ...one, body: createHash('sha256').update(one.body).digest('hex') };
    });
  };

  test('returns the same for the same seed, and something else for another', () => {
    expect(series(1)).toEqual(series(1));
    expect(series(1)).not.toEqual(series(2));
  });

  test('knows many kinds of errors', () => {
    const kinds = new Set(series(3, 200).map((one) => (one as { readonly what: string }).what));
    expect(kinds.size).toBeGreaterThanOrEqual(4);
  });
});

test('manifests for hostile trees are the same for the same seed, and most reach the nodes', () => {
  const series = (seed: number) => {
    const chance = new Chance(seed, 'fuzz');
    return Array.from({ length: 300 }, () => hostileManifests(chance, 'edge'));
  };
  expect(series(1)).toEqual(series(1));
  expect(series(1)).not.toEqual(series(2));
  const all = series(3);
  const readable = all.filter((manifests) => manifests.every((one) => checkManifest(one, '').ok));
  expect(readable.length).toBeGreaterThan(all.length / 2);
  expect([...new Set(all.flat().map(({ kind }) => kind))].sort()).toEqual(['Directory', 'File', 'Link', 'Probe']);
});

test('the manifests of every kind are valid before an error is added', () => {
  expect(Object.keys(SPECS).sort()).toEqual(KINDS.map(({ name }) => name).sort());
  const checked = Object.entries(SPECS).map(([kind, spec]) =>
    checkManifest({ apiVersion: 'sluice.dev/v1alpha1', kind, metadata: { name: 'fuzz' }, spec }, ''),
  );
  expect(checked.flatMap((one) => (one.ok ? [] : one.reasons))).toEqual([]);
});

describe('the bad input', () => {
  const bodies = (seed: number): readonly { readonly body: Buffer; readonly unreadable: boolean }[] => {
    const chance = new Chance(seed, 'fuzz');
    return Array.from({ length: 300 }, () => badReport(chance, NODES));
  };

  test('is not a JSON object if it is marked as unreadable', () => {
    const isObject = (body: Buffer): boolean => {
      try {
        const value: unknown = JSON.parse(body.toString());
        return typeof value === 'object' && value !== null && !Array.isArray(value);
      } catch {
        return false;
      }
    };
    expect(bodies(1).filter(({ unreadable, body }) => unreadable && isObject(body)).length).toBe(0);
    expect(bodies(1).filter(({ unreadable }) => unreadable).length).toBeGreaterThan(50);
  });

  test("includes messages near and above the server's size limit", () => {
    const sizes = bodies(2).map(({ body }) => body.length);
    expect(sizes.some((size) => size > 0.9 * MAX_PAYLOAD && size <= MAX_PAYLOAD)).toBe(true);
    expect(sizes.some((size) => size === 0 || size > MAX_PAYLOAD - 200)).toBe(true);
  });
});
