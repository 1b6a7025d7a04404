import { OpsError, type FleetClient } from '#libs/client';
import type { KnownBadView } from '#libs/contracts';
import { factOf, LedgerCopy, MemoryLedger } from '#libs/testing';
import { KnownBadExchange } from '../../services/applier/src/shell/fleets/known-bad-exchange.js';
import { validatorCore, type Input } from '../../services/validator/src/core/index.js';

const HASH = 'ab'.repeat(32);
const validatorOn = (ledger = new MemoryLedger()) => new LedgerCopy(validatorCore, ledger);

/** The validator of one fleet, with what others may ask of it. */
class Fleet {
  /** How often each request arrives. */
  times = 1;
  isAway = false;
  private validator = validatorOn();
  private leases = 0;

  constructor(readonly name: string) {}

  get client(): FleetClient {
    const client = {
      server: this.name,
      list: () => Promise.resolve(new Map(this.view === undefined ? [] : [[`config.${HASH}`, this.view]])),
      request: (subject: string, body: object) => {
        if (this.isAway) throw new Error('no answer');
        for (let i = 1; i < this.times; i++) this.ask(subject, body);
        return Promise.resolve(this.ask(subject, body));
      },
    };
    return client as unknown as FleetClient;
  }

  get view(): KnownBadView | undefined {
    const { core, state } = this.validator;
    return core.view(state, { bucket: 'known-bad', key: `config.${HASH}` }) as KnownBadView | undefined;
  }

  get isBad(): boolean {
    return this.view?.gone === false;
  }

  get facts(): number {
    return this.validator.ledger.last;
  }

  /** A node reports the config as invalid. */
  find(): void {
    this.leases += 1;
    const [node, lease] = [`${this.name}-1`, `${this.name}-1-l${this.leases}`];
    const settled = {
      node,
      lease,
      change: `c${this.leases}`,
      hash: HASH,
      kind: 'forward',
      because: 'invalid',
    } as const;
    this.validator
      .given(factOf('node.lease.settled', { pool: 'default', ...settled, reason: 'a probe failed' }))
      .when();
  }

  clear(): void {
    this.validator.when({ type: 'request', request: { op: 'clear', hash: HASH, by: 'me', reason: 'fixed' } });
  }

  /** Its validator starts again from its ledger, and from nothing else. */
  restart(): void {
    this.validator = validatorOn(this.validator.ledger).read();
  }

  /** The config works on a node here. */
  hasItInForce(): void {
    this.validator.given(factOf('node.reported', { node: `${this.name}-2`, hash: HASH, report: 'applied' }));
  }

  private ask(subject: string, body: object): unknown {
    const request = { by: 'nobody', ...body, op: subject.slice(subject.lastIndexOf('.') + 1) } as Input['request'];
    this.validator.when({ type: 'request', request });
    const [answer] = this.validator.answers as readonly { readonly ok: boolean; code: string; message: string }[];
    if (answer?.ok !== true) throw new OpsError(answer?.code ?? '', answer?.message ?? '');
    return answer;
  }
}

let hub: Fleet;
let europe: Fleet;
let asia: Fleet;
let exchanges: Map<Fleet, KnownBadExchange>;
beforeEach(() => {
  [hub, europe, asia] = [new Fleet('hub'), new Fleet('europe'), new Fleet('asia')];
  exchanges = new Map([europe, asia].map((one) => [one, exchange(one)]));
});

const exchange = (fleet: Fleet): KnownBadExchange =>
  new KnownBadExchange({ fleet: fleet.name, hub: hub.client, link: { call: (work) => work(fleet.client) } });

/** Exchanges until nothing changes. Fails if that never happens. */
async function settle(): Promise<void> {
  const facts = (): number => hub.facts + europe.facts + asia.facts;
  for (let round = 0, before = -1; before !== facts(); round++) {
    if (round > 10) throw new Error('the fleets never come to rest');
    before = facts();
    for (const one of exchanges.values()) await one.run();
  }
}

const bad = (): readonly boolean[] => [hub, europe, asia].map(({ isBad }) => isBad);
const NOWHERE = [false, false, false];
const EVERYWHERE = [true, true, true];

it('a config that one fleet has found to be bad is refused everywhere', async () => {
  europe.find();
  await settle();
  expect(bad()).toEqual(EVERYWHERE);
  expect([hub.view?.fleet, asia.view?.fleet]).toEqual(['europe', 'europe']);
});

it('a clear at the hub clears it where it came from the hub, and not in the fleet that found it', async () => {
  europe.find();
  await settle();
  hub.clear();
  await settle();
  expect(bad()).toEqual([false, true, false]);
  expect(asia.view).toMatchObject({ clearedBy: 'me', clearedReason: 'fixed' });
});

it('a clear in the fleet that found it clears it everywhere', async () => {
  europe.find();
  await settle();
  europe.clear();
  await settle();
  expect(bad()).toEqual(NOWHERE);
  expect(asia.view).toMatchObject({ clearedBy: 'me', clearedReason: 'fixed' });
});

it('a clear in another fleet clears it there only', async () => {
  europe.find();
  await settle();
  asia.clear();
  await settle();
  expect(bad()).toEqual([true, true, false]);
});

it.each([
  ['at the hub, and in the fleet that found it', () => [hub, europe]],
  ['in the fleet that found it', () => [europe]],
])('a config that is found to be bad again after a clear %s is refused everywhere again', async (_, where) => {
  europe.find();
  await settle();
  for (const one of where()) one.clear();
  await settle();
  expect(bad()).toEqual(NOWHERE);
  europe.find();
  await settle();
  expect(bad()).toEqual(EVERYWHERE);
  hub.clear();
  await settle();
  expect(bad()).toEqual([false, true, false]);
});

it('a config that the hub itself has found again travels again, too', async () => {
  for (let i = 0; i < 2; i++) {
    hub.find();
    await settle();
    expect(bad()).toEqual(EVERYWHERE);
    hub.clear();
    await settle();
    expect(bad()).toEqual(NOWHERE);
  }
});

it('a config that two fleets have found stays known-bad at the hub until it is cleared there', async () => {
  europe.find();
  asia.find();
  await settle();
  europe.clear();
  await settle();
  expect(bad()).toEqual([true, false, true]);
  asia.clear();
  await settle();
  expect(bad()).toEqual([true, false, false]);
  hub.clear();
  await settle();
  expect(bad()).toEqual(NOWHERE);
});

it('one clear at the hub is enough, however many fleets have found it', async () => {
  europe.find();
  asia.find();
  await settle();
  hub.clear();
  await settle();
  expect(bad()).toEqual([false, true, true]);
});

it('a fleet keeps what works there', async () => {
  asia.hasItInForce();
  europe.find();
  await settle();
  expect(bad()).toEqual([true, true, false]);
});

it('a clear that is late does not clear what was found since', async () => {
  europe.find();
  await settle();
  // What an exchange has read before the config was found to be bad again.
  hub.clear();
  const late = asia.view?.findings;
  europe.clear();
  await settle();
  europe.find();
  await settle();
  expect(bad()).toEqual(EVERYWHERE);
  const clear = { hash: HASH, by: 'me', reason: 'fixed', findings: late };
  expect(() => asia.client.request('ops.known-bad.clear', clear)).toThrow('was also found to be bad by europe');
  expect(asia.isBad).toBe(true);
});

/** The same numbers for a seed (a linear congruential generator). */
function chance(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

it.each(Array.from({ length: 60 }, (_, seed) => seed))(
  'whatever is lost, doubled or restarted, the fleets come to rest, and each finding counts once (seed %i)',
  async (seed) => {
    const pick = chance(seed);
    const all = [hub, europe, asia];
    for (let i = 0; i < 60; i++) {
      const one = all[pick(3)] as Fleet;
      const what = pick(9);
      if (what === 0 && !one.isBad) one.find();
      else if (what === 1) one.clear();
      else if (what === 2) one.restart();
      else if (what === 3) one.times = 1 + pick(3);
      else if (what === 4) one.isAway = pick(3) === 0;
      // Another copy of the applier knows nothing of what this one was refused.
      else if (what === 5 && one !== hub) exchanges.set(one, exchange(one));
      else if (one !== hub) await exchanges.get(one)?.run();
    }
    for (const one of all) one.isAway = false;
    for (const one of [europe, asia]) exchanges.set(one, exchange(one));
    await settle();
    for (const one of all) {
      const found = [...(one.view?.findings ?? []), ...(one.view?.clearedFindings ?? [])];
      expect(new Set(found).size).toBe(found.length);
    }
    // What a fleet has found, and nobody has cleared anywhere, is refused everywhere.
    if (!europe.isBad) europe.find();
    await settle();
    expect(europe.isBad).toBe(true);
    for (const one of all) one.clear();
    await settle();
    expect(bad()).toEqual(NOWHERE);
    europe.find();
    await settle();
    expect(bad()).toEqual(EVERYWHERE);
  },
);
