import { SERVICES, subjectKeys } from '#libs/contracts';
import { until } from '#libs/testing';
import { Chance } from '../simulation/world/chance.js';
import { badFact, FOREIGN_TYPES } from './doors/facts.js';
import { Stage } from './stage.js';

interface Diagnosis {
  readonly ok: boolean;
  readonly checks: readonly {
    readonly what: string;
    readonly state: string;
    readonly detail: string;
    readonly todo: string;
  }[];
}

describe('a foreign fact in the ledger', () => {
  let stage: Stage;

  beforeAll(async () => {
    stage = await Stage.open();
  });
  afterAll(() => stage?.close());

  const halted = async (): Promise<Readonly<Record<string, string>>> => {
    const { services } = await stage.fleet.client.inspect();
    return Object.fromEntries(
      services.filter((service) => service.halted !== '').map((service) => [service.name, service.halted]),
    );
  };
  const voided = (sequence: number): Promise<number | undefined> =>
    stage.store(
      `ledger.voided.${sequence}`,
      Buffer.from(JSON.stringify({ v: 1, at: '2026-01-01T00:00:00.000Z', sequence, by: 'me', reason: 'foreign' })),
    );
  const doctor = async (): Promise<Diagnosis> =>
    JSON.parse((await stage.fleet.cli('doctor', '-o', 'json')).stdout) as Diagnosis;
  const allGoOn = async (): Promise<void> => {
    await until(
      async () =>
        Object.keys(await halted()).length === 0 &&
        (await stage.fleet.client.inspect()).services.length === SERVICES.length,
      'all services continue',
    );
  };

  test('of a later version stops its readers; doctor says how to continue, and voiding it lets all continue', async () => {
    const before = stage.signs;
    const sequence = await stage.store(
      'config.committed.c7',
      Buffer.from(JSON.stringify({ v: 2, at: '2026-01-01T00:00:00.000Z', change: 'c7', somethingNew: true })),
    );
    await until(
      async () =>
        ['merger', 'scheduler', 'validator'].every(
          (
            (names) => (name: string) =>
              names.includes(name)
          )(Object.keys(await halted())),
        ),
      'who reads commits has stopped',
    );
    const reasons = await halted();
    for (const reason of Object.values(reasons))
      expect(reason).toMatch(
        new RegExp(
          `sequence ${sequence} of the ledger \\(config\\.committed\\.c7\\) cannot be decoded: .*version 2 is newer than 1`,
        ),
      );
    const last = await stage.ledgerEnd();

    const change = await stage.fleet.publish({ apply: [] });
    const { ok, checks } = await doctor();
    expect(ok).toBe(false);
    for (const name of Object.keys(reasons)) {
      expect(checks.find(({ what }) => what === name)).toMatchObject({
        state: 'bad',
        detail: expect.stringContaining(`sequence ${sequence}`) as string,
        todo: expect.stringContaining(`nats pub ledger.voided.${sequence} `) as string,
      });
    }
    const reply = await stage.request('ops.rollout.list', Buffer.from('{}'));
    expect(JSON.parse(reply?.body ?? '')).toMatchObject({
      error: { code: 'halted', message: expect.stringContaining(`sequence ${sequence}`) as string },
    });
    expect(await stage.ledgerEnd()).toBe(last);
    expect((await stage.complaints(before)).filter((complaint) => !complaint.includes('halted'))).toEqual([]);

    await voided(sequence as number);
    await allGoOn();
    expect(await stage.fleet.ended(change)).toMatchObject({ phase: 'rejected' });
    await stage.rollOut('after a later version');
  });

  test('of every kind at once, with any error', async () => {
    const chance = new Chance(7, 'fuzz');
    const before = stage.signs;
    const sequences: number[] = [];
    for (const type of FOREIGN_TYPES) {
      const { subject, body } = badFact(chance, type);
      const sequence = await stage.store(subject, body);
      if (sequence !== undefined) sequences.push(sequence);
    }
    expect(sequences).toHaveLength(FOREIGN_TYPES.length);
    await until(async () => Object.keys(await halted()).length === SERVICES.length, 'every service has stopped');
    expect((await stage.complaints(before)).filter((complaint) => !complaint.includes('halted'))).toEqual([]);
    for (const sequence of sequences) await voided(sequence);
    await allGoOn();
    await stage.rollOut('after all kinds');
    // A void fact is also void for a service that reads the ledger from its start.
    await stage.restart();
    await stage.rollOut('after a restart');
  });

  test('whose body names another subject stops its readers', async () => {
    const subject = `node.left.${subjectKeys('node.left')
      .map(() => 'nobody')
      .join('.')}`;
    const node = stage.fleet.nodes[0] as string;
    const sequence = (await stage.store(
      subject,
      Buffer.from(JSON.stringify({ v: 1, at: '2026-01-01T00:00:00.000Z', node, because: 'removed' })),
    )) as number;
    expect(await until(async () => (await halted())['inventory'], 'the inventory has stopped')).toMatch(
      new RegExp(`sequence ${sequence} .*belongs to another subject: node\\.left\\.`),
    );
    await voided(sequence);
    await allGoOn();
    expect(await stage.fleet.client.get('nodes', node)).toMatchObject({ state: 'ready' });
  });

  test('that is well-formed counts until it is declared void, and then no service keeps it', async () => {
    const node = 'nobody.far';
    const at = '2026-01-01T00:00:00.000Z';
    const sequence = (await stage.store(
      'node.joined.nobody_far',
      Buffer.from(
        JSON.stringify({
          v: 1,
          at,
          node,
          labels: {},
          capabilities: [],
          version: '',
          incarnation: 1,
          nonce: 1,
          seq: 1,
          fresh: false,
        }),
      ),
    )) as number;
    await stage.fleet.when('nodes', node, (view) => view.state === 'ready');
    await voided(sequence);
    await until(async () => {
      const reply = await stage.request('ops.node.get', Buffer.from(JSON.stringify({ node })));
      return /"code":"not-found"/.test(reply?.body ?? '');
    }, 'no service knows it any more');
    await allGoOn();
    await stage.rollOut('after a lie');
  });

  test('a value ahead of the ledger stops its owner when it begins to lead; without it, the owner continues', async () => {
    const { fleet } = stage;
    const subject = '$KV.pools.foreign';
    await stage.store(subject, Buffer.from('{"ledger":4294967296,"pool":"foreign"}'));
    await fleet.processes.stop('scheduler');
    fleet.startService('scheduler');
    await until(async () => (await halted())['scheduler'] !== undefined, 'the scheduler has stopped');
    const reason = (await halted())['scheduler'];
    expect(reason).toMatch(/the view pools\/foreign shows 4294967296.*nats kv del pools foreign/);
    const before = stage.signs;
    expect((await stage.complaints(before)).filter((complaint) => complaint.startsWith('scheduler'))).toEqual([]);
    await stage.store(subject, Buffer.alloc(0), { 'KV-Operation': 'DEL' });
    await allGoOn();
    await stage.rollOut('after a value from the future');
  });
});
