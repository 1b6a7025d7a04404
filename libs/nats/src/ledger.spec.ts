import { LEDGER, type NewFact } from '#libs/contracts';
import { natsFixture } from '#libs/testing';
import { connectBus, type Bus } from './connection.js';
import { Ledger } from './ledger.js';
import { readAll } from './stream-reader.js';
import { ensureTopology } from './topology.js';

describe('the ledger', () => {
  const nats = natsFixture();
  const buses: Bus[] = [];
  const facts = (count: number, node: string): NewFact[] =>
    Array.from({ length: count }, () => ({ type: 'node.heard', node }));

  const numbered = (name: string, count: number): (NewFact & { readonly node: string })[] =>
    Array.from({ length: count }, (_, i) => ({ type: 'node.heard', node: `${name}${i}` }));
  const nodesBehind = async (bus: Bus, last: number): Promise<readonly string[]> => {
    const found: string[] = [];
    await readAll(bus, { stream: LEDGER, from: last + 1, ahead: 100 }, ({ subject }) =>
      found.push(subject.split('.').at(-1) ?? ''),
    );
    return found;
  };

  beforeAll(async () => {
    for (const name of ['a', 'b']) buses.push(await connectBus({ servers: nats.server.url, name }));
    await ensureTopology(buses[0] as Bus);
  });
  afterAll(async () => {
    await Promise.all(buses.map((bus) => bus.close()));
  });

  it.each([1, 2, 3, 1_000])('appends %i facts together, only at its end', async (count) => {
    const ledger = new Ledger(buses[0] as Bus);
    const before = await ledger.lastSequence();
    const result = await ledger.append(facts(count, 'n1'), before);
    expect(result).toMatchObject({ outcome: 'appended' });
    expect(result.outcome === 'appended' && result.appended.map(({ sequence }) => sequence)).toEqual(
      Array.from({ length: count }, (_, i) => before + 1 + i),
    );
    expect(await ledger.append(facts(count, 'n1'), before)).toMatchObject({
      outcome: 'refused',
      reason: expect.stringContaining('wrong last sequence'),
    });
    expect(await ledger.lastSequence()).toBe(before + count);
  });

  it.each([1, 7])('accepts exactly one of two concurrent appends of %i facts', async (count) => {
    const [a, b] = buses.map((bus) => new Ledger(bus)) as [Ledger, Ledger];
    for (let round = 0; round < 50; round += 1) {
      const last = await a.lastSequence();
      const results = await Promise.all([a.append(facts(count, 'a'), last), b.append(facts(count, 'b'), last)]);
      expect(results.map(({ outcome }) => outcome).sort()).toEqual(['appended', 'refused']);
      expect(await b.lastSequence()).toBe(last + count);
    }
  });

  it.each([1, 2, 1_000])('appends %i separate facts one after another, only at its end', async (count) => {
    const ledger = new Ledger(buses[0] as Bus);
    const before = await ledger.lastSequence();
    const result = await ledger.append(facts(count, 'n1'), before, true);
    expect(result.outcome === 'appended' && result.appended.map(({ sequence }) => sequence)).toEqual(
      Array.from({ length: count }, (_, i) => before + 1 + i),
    );
    expect(await ledger.append(facts(count, 'n1'), before, true)).toMatchObject({ outcome: 'refused' });
    expect(await ledger.lastSequence()).toBe(before + count);
  });

  it.each([1, 2, 7])('accepts no later separate facts if %i others were appended first', async (others) => {
    const ledger = new Ledger(buses[0] as Bus);
    const before = await ledger.lastSequence();
    await new Ledger(buses[1] as Bus).append(facts(others, 'b'), before);
    // For example, the third of them expects the very end that the two others have made.
    expect(await ledger.append(facts(8, 'a'), before, true)).toMatchObject({ outcome: 'refused' });
    expect(await ledger.lastSequence()).toBe(before + others);
  });

  it('accepts only a gapless first part of separate facts if several copies append at once', async () => {
    const [a, b] = buses.map((bus) => new Ledger(bus)) as [Ledger, Ledger];
    for (let round = 0; round < 100; round += 1) {
      const last = await a.lastSequence();
      const names = ['a', 'b', 'c', 'd'];
      const results = await Promise.all(
        names.map((name, i) => (i % 2 === 0 ? a : b).append(numbered(name, 6), last, true)),
      );
      const stored = await nodesBehind(buses[0] as Bus, last);
      const winner = stored[0]?.slice(0, 1) ?? '';
      expect(stored).toEqual(
        numbered(winner, 6)
          .slice(0, stored.length)
          .map(({ node }) => node),
      );
      expect(results.map(({ outcome }) => outcome)).toEqual(
        names.map((name) => (name === winner ? 'appended' : 'refused')),
      );
    }
  });

  it('never appends an unreadable fact', async () => {
    const ledger = new Ledger(buses[0] as Bus);
    await expect(
      ledger.append([{ type: 'node.silent', node: 'n1', lastHeard: 7 as unknown as string }], 0),
    ).rejects.toThrow(/lastHeard|last_heard/);
  });

  it('reports an unclear append if the server is away', async () => {
    const bus = await connectBus({ servers: nats.server.url, name: 'cut' });
    await bus.nc.close();
    expect(await new Ledger(bus).append(facts(1, 'n1'), 0)).toMatchObject({ outcome: 'unclear' });
  });

  it('cannot be deleted from', async () => {
    await expect((buses[0] as Bus).jsm.streams.deleteMessage(LEDGER, 1)).rejects.toThrow();
  });
});
