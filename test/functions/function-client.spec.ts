import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { testAuthority } from '#libs/testing';
import { UnreachableError } from '../../services/applier/src/shell/ports.js';
import { FunctionClient } from '../../services/applier/src/shell/functions/function-client.js';
import { FunctionServices } from '../../services/applier/src/shell/functions/function-services.js';
import { FunctionStandIn } from '../../cli/src/demo/functions/stand-in.js';

const POLICIES = 'sdewan/mwan3/v1/policies';
let replica: FunctionStandIn;
const clients: FunctionClient[] = [];
const client = (change: object = {}): FunctionClient => {
  const made = new FunctionClient({
    baseUrl: replica.baseUrl,
    user: 'root',
    password: 'secret',
    callTimeoutMs: 20_000,
    ...change,
  });
  clients.push(made);
  return made;
};
beforeEach(async () => void (replica = await FunctionStandIn.start()));
afterEach(async () => {
  for (const one of clients.splice(0)) await one.close();
  await replica.close();
});

test('one login serves all calls, and a lost session leads to one more', async () => {
  const one = client();
  expect(await one.call('GET', POLICIES)).toMatchObject({ status: 200, body: { policies: [] } });
  await one.call('GET', POLICIES);
  expect(replica.logins).toBe(1);
  replica.endSessions();
  expect(await one.call('GET', POLICIES)).toMatchObject({ status: 200 });
  expect(replica.logins).toBe(2);
});

test('a replica that does not let the applier in is unreachable, and is not asked again within a call', async () => {
  await expect(client({ password: 'wrong' }).call('DELETE', `${POLICIES}/a`)).rejects.toMatchObject({
    fault: 'unreachable',
    message: expect.stringContaining('Check the user and the password'),
  });
  await expect(client({ password: '' }).call('GET', POLICIES)).rejects.toMatchObject({
    fault: 'unreachable',
    message: expect.stringContaining('there is no password for root'),
  });
  expect(replica.calls).toEqual([]);
});

test('a second 403 is an error, also for a DELETE: of the replica if it forbids everything', async () => {
  const one = client();
  replica.onCall = () => replica.endSessions();
  await expect(one.call('DELETE', `${POLICIES}/a`)).rejects.toMatchObject({
    fault: 'unreachable',
    message: expect.stringContaining('is forbidden, also after a new login as root'),
  });
  replica.onCall = (call) => void (call.includes('policies') && replica.endSessions());
  await expect(one.call('DELETE', `${POLICIES}/a`)).rejects.toMatchObject({
    fault: 'node',
    message: expect.stringContaining('is forbidden, also after a new login as root'),
  });
});

test.each([200, 302, 404, 429])(
  'what answers %i in the words of another server is no replica: no write there counts as done',
  async (status) => {
    const one = client();
    await one.call('GET', POLICIES);
    replica.troubles.status = status;
    for (const [method, path] of [
      ['GET', 'sdewan/v1/services'],
      ['GET', POLICIES],
      ['DELETE', `${POLICIES}/a`],
    ] as const)
      await expect(one.call(method, path)).rejects.toMatchObject({
        fault: 'unreachable',
        message: expect.stringContaining(`is answered ${status} (error)`),
      });
  },
);

test('a refusal in other words is a refusal if other calls are answered, and a page is a failure', async () => {
  const one = client();
  replica.onCall = (call) => void (replica.troubles.status = call.includes('policies') ? 413 : undefined);
  expect(await one.call('POST', POLICIES, {})).toMatchObject({ status: 413, message: 'error' });
  replica.onCall = (call) => void (replica.troubles.status = call.includes('policies') ? 200 : undefined);
  await expect(one.call('GET', POLICIES)).rejects.toMatchObject({
    fault: 'node',
    message: expect.stringContaining('which is no answer of a network function'),
  });
});

test('an answer that does not come in time, and no connection, are unreachable', async () => {
  const slow = client({ callTimeoutMs: 50 });
  replica.troubles.delayMs = 60_000;
  await expect(slow.call('GET', POLICIES)).rejects.toThrow(/ was not answered within 50 ms$/);
  await replica.close();
  await expect(client().call('GET', POLICIES)).rejects.toBeInstanceOf(UnreachableError);
  await expect(client().call('GET', POLICIES)).rejects.toThrow('ECONNREFUSED');
});

test('a write whose time is over after the login is not sent', async () => {
  replica.troubles.delayMs = 50;
  const late = client().call('DELETE', `${POLICIES}/a`, undefined, 1);
  await expect(late).rejects.toThrow(/ was not answered within 1 ms$/);
  expect([replica.logins, replica.calls]).toEqual([1, []]);
});

test('a connection that the replica closed while it was idle does not count, and for a write it does', async () => {
  const one = client();
  await one.call('GET', POLICIES);
  replica.troubles.resets = 1;
  expect(await one.call('GET', POLICIES)).toMatchObject({ status: 200 });
  replica.troubles.resets = 1;
  await expect(one.call('DELETE', `${POLICIES}/a`)).rejects.toBeInstanceOf(UnreachableError);
  replica.troubles.resets = 2;
  await expect(one.call('GET', POLICIES)).rejects.toBeInstanceOf(UnreachableError);
});

test('a 500 of one call is its own, and one of all calls is unreachable', async () => {
  const one = client();
  await one.call('GET', POLICIES);
  replica.troubles.losePuts = 1;
  const policy = { members: [{ interface: 'wan1', metric: '1', weight: '1' }] };
  await expect(one.call('PUT', `${POLICIES}/a`, policy)).rejects.toMatchObject({ fault: 'node' });
  replica.troubles.status = 500;
  await expect(one.call('PUT', `${POLICIES}/a`, policy)).rejects.toMatchObject({ fault: 'unreachable' });
  replica.troubles.status = 503;
  await expect(one.call('GET', POLICIES)).rejects.toMatchObject({ fault: 'unreachable' });
});

test('a message is read although it is no JSON', async () => {
  const { status, message } = await client().call('POST', POLICIES, {
    name: 'a',
    members: [{ interface: 'no"t', metric: '1', weight: '1' }],
  });
  expect({ status, message }).toEqual({
    status: 400,
    message: expect.stringContaining('Interface[no"t] is not definied'),
  });
});

test('what speaks no TLS is named in plain words', async () => {
  const one = client({ baseUrl: replica.baseUrl.replace('http:', 'https:') });
  await expect(one.call('GET', POLICIES)).rejects.toThrow('what answers there does not speak TLS: check the port');
});

test('only the certificate of its own authority is trusted', async () => {
  const { ca, key, cert } = await signed();
  const secure = await FunctionStandIn.start({ tls: { key, cert } });
  try {
    expect(await client({ baseUrl: secure.baseUrl, ca }).call('GET', POLICIES)).toMatchObject({ status: 200 });
    await expect(client({ baseUrl: secure.baseUrl }).call('GET', POLICIES)).rejects.toMatchObject({
      fault: 'unreachable',
      message: expect.stringContaining('certificate'),
    });
  } finally {
    await secure.close();
  }
});

describe('services', () => {
  test('an action runs once, and again until it succeeds', async () => {
    const services = new FunctionServices(client());
    await services.act({ kind: 'restart', unit: 'mwan3' }, 10_000);
    await services.act({ kind: 'none' }, 10_000);
    expect(replica.services).toEqual(['restart mwan3']);
    replica.troubles.failServices = 2;
    await services.act({ kind: 'reload', unit: 'firewall' }, 10_000);
    expect(replica.services).toEqual(['restart mwan3', 'reload firewall']);
    await services.readUnit('ipsec');
  });

  test('an action that never succeeds fails when its time is over', async () => {
    const services = new FunctionServices(client());
    replica.troubles.status = 502;
    await expect(services.act({ kind: 'restart', unit: 'mwan3' }, 1_000)).rejects.toBeInstanceOf(UnreachableError);
  });

  test('what a function cannot do is refused before the change', async () => {
    const services = new FunctionServices(client());
    expect(await services.refusals([{ kind: 'none' }, { kind: 'drain' }, { kind: 'restart', unit: 'ipsec' }])).toEqual(
      [],
    );
    expect(await services.refusals([{ kind: 'reboot' }, { kind: 'restart', unit: 'sshd.service' }])).toEqual([
      { fault: 'node', reason: 'action reboot: a network function cannot do this' },
      { fault: 'node', reason: 'action restart of sshd.service: it has only the services mwan3, firewall, ipsec' },
    ]);
    await replica.close();
    expect(await services.refusals([{ kind: 'restart', unit: 'ipsec' }])).toMatchObject([{ fault: 'unreachable' }]);
  });
});

async function signed(): Promise<{ readonly ca: string; readonly key: string; readonly cert: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-function-'));
  try {
    const authority = await testAuthority();
    const { keyFile, certFile } = await authority.write(folder);
    return { ca: authority.ca, key: readFileSync(keyFile, 'utf8'), cert: readFileSync(certFile, 'utf8') };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
