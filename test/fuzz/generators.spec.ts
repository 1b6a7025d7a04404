import { createHash } from 'node:crypto';
import { checkManifest, KINDS } from '#libs/manifests';
import { Chance } from '../simulation/world/chance.js';
import { edit } from './doors/buckets.js';
import { badChange, SPECS } from './doors/changes.js';
import { badFact } from './doors/facts.js';
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
  /** With digests in place of bodies, which are large. */
  const series = (seed: number, count = 30): readonly object[] => {
    const chance = new Chance(seed, 'fuzz');
    return Array.from({ length: count }, () => {
      const one = generate(chance) as { readonly body?: Buffer };
      return one.body === undefined ? one : { ...one, body: createHash('sha256').update(one.body).digest('hex') };
    });
  };

  test('gives the same for the same seed, and something else for another', () => {
    expect(series(1)).toEqual(series(1));
    expect(series(1)).not.toEqual(series(2));
  });

  test('knows many ways to be wrong', () => {
    const kinds = new Set(series(3, 200).map((one) => (one as { readonly what: string }).what));
    expect(kinds.size).toBeGreaterThanOrEqual(4);
  });
});

test('manifests of every kind are thrown, and each would be taken as it stands here', () => {
  expect(Object.keys(SPECS).sort()).toEqual(KINDS.map(({ name }) => name).sort());
  const checked = Object.entries(SPECS).map(([kind, spec]) =>
    checkManifest({ apiVersion: 'sluice.dev/v1alpha1', kind, metadata: { name: 'fuzz' }, spec }, ''),
  );
  expect(checked.flatMap((one) => (one.ok ? [] : one.reasons))).toEqual([]);
});

describe('what is thrown', () => {
  const bodies = (seed: number): readonly { readonly body: Buffer; readonly unreadable: boolean }[] => {
    const chance = new Chance(seed, 'fuzz');
    return Array.from({ length: 300 }, () => badReport(chance, NODES));
  };

  test('is no JSON object where it is said to be unreadable', () => {
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

  test('comes near the largest message of the server, and beyond it', () => {
    const sizes = bodies(2).map(({ body }) => body.length);
    expect(sizes.some((size) => size > 0.9 * MAX_PAYLOAD && size <= MAX_PAYLOAD)).toBe(true);
    expect(sizes.some((size) => size === 0 || size > MAX_PAYLOAD - 200)).toBe(true);
  });
});
