import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SILENT, type Logger } from '#libs/process';
import { startNatsServer, testAuthority, until, type NatsServer } from '#libs/testing';
import { connectBus } from '../connection.js';

let folder: string;
let server: NatsServer | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-dialer-'));
});
afterEach(async () => {
  await server?.stop();
  server = undefined;
  rmSync(folder, { recursive: true });
});

const start = async (config: string): Promise<NatsServer> =>
  (server = await startNatsServer({ dataDir: join(folder, 'data'), config }));

/** Restarts the server with a part of its configuration replaced. */
async function restartWith(running: NatsServer, before: string, after: string): Promise<void> {
  const file = join(running.dataDir, 'nats-server.conf');
  writeFileSync(file, readFileSync(file, 'utf8').replace(before, after));
  await running.restart();
}

function listening(): { readonly logger: Logger; readonly warnings: object[] } {
  const warnings: object[] = [];
  return {
    warnings,
    logger: { ...SILENT, warn: (fields, message) => void warnings.push({ ...fields, message }) },
  };
}

const connecting = (servers: string | readonly string[], rest: object = {}): ReturnType<typeof connectBus> =>
  connectBus({ servers, name: 'spec', waitOnFirstConnect: false, timeoutMs: 5_000, ...rest });

test('a token that is replaced in its file is used at the next connection', async () => {
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, 'one\n');
  const running = await start('authorization { token: one }');
  const bus = await connecting(running.url, { tokenFile });
  writeFileSync(tokenFile, 'two\n');
  await restartWith(running, 'token: one', 'token: two');
  await until(() => bus.connected, 'the bus is connected again');
  await bus.nc.flush();
  await bus.close();
});

test('a client whose credentials are refused after a restart logs that, and reconnects once they are accepted', async () => {
  const { logger, warnings } = listening();
  const running = await start('authorization { token: one }');
  const bus = await connecting(running.url, { token: 'one', logger });
  await restartWith(running, 'token: one', 'token: two');
  const reason = `the server ${running.url.slice('nats://'.length)} refused the credentials (the token): Authorization Violation`;
  await until(() => JSON.stringify(warnings).includes(reason), 'a warning with the reason');
  expect(warnings).toContainEqual(expect.objectContaining({ reason, message: 'cannot connect; trying again' }));
  await restartWith(running, 'token: two', 'token: one');
  await until(() => bus.connected, 'the bus is connected again');
  await bus.close();
});

test('a user without a password is told so', async () => {
  const { url } = await start('authorization { users: [{ user: ada, password: one }] }');
  await expect(connecting(url, { user: 'ada' })).rejects.toThrow('(the user "ada" without a password: use ');
  await expect(connecting(url, { user: 'ada', password: 'two' })).rejects.toThrow('(the user "ada" with its password)');
});

test('of several servers, reports the one that refuses and not those that are away', async () => {
  const running = await start('authorization { token: one }');
  // No process gets this port by chance.
  const away = 'nats://127.0.0.1:1';
  for (const servers of [
    [running.url, away],
    [away, running.url],
  ])
    await expect(connecting(servers)).rejects.toMatchObject({
      name: 'AccessError',
      message: expect.stringContaining('refused the connection without credentials') as string,
    });
});

test('a server that is addressed by IP must have a certificate for that IP', async () => {
  const authority = await testAuthority();
  const ca = join(folder, 'ca.crt');
  writeFileSync(ca, authority.ca);
  const { certFile, keyFile } = await authority.write(folder, { dnsName: 'localhost' });
  const running = await start(`tls { cert_file: "${certFile}", key_file: "${keyFile}" }`);
  const ofLocalhost = running.url.replace('127.0.0.1', 'localhost');
  await (await connecting(ofLocalhost, { tlsCa: ca })).close();
  await expect(connecting(running.url, { tlsCa: ca })).rejects.toThrow(
    /the certificate of the server 127\.0\.0\.1:\d+ is for other names/,
  );
  await authority.write(folder);
  await running.restart();
  await (await connecting(running.url, { tlsCa: ca })).close();
  await expect(connecting(ofLocalhost, { tlsCa: ca })).rejects.toThrow('is for other names');
});

test('an expired certificate and one of an unknown CA are reported as such', async () => {
  const authority = await testAuthority();
  const ca = join(folder, 'ca.crt');
  writeFileSync(ca, authority.ca);
  const { certFile, keyFile } = await authority.write(folder, { fromMs: -7_200_000, toMs: -3_600_000 });
  const running = await start(`tls { cert_file: "${certFile}", key_file: "${keyFile}" }`);
  await expect(connecting(running.url, { tlsCa: ca })).rejects.toThrow(/certificate of the server .* has expired/);
  await authority.write(folder);
  await running.restart();
  await expect(connecting(running.url)).rejects.toThrow(/is not signed by a CA that this machine trusts: set its CA/);
});

test('a server that requires a client certificate says so at once', async () => {
  const authority = await testAuthority();
  const ca = join(folder, 'ca.crt');
  writeFileSync(ca, authority.ca);
  const { certFile, keyFile } = await authority.write(folder);
  const running = await start(
    `tls { cert_file: "${certFile}", key_file: "${keyFile}", ca_file: "${ca}", verify: true }`,
  );
  await expect(connecting(running.url, { tlsCa: ca })).rejects.toThrow(
    /the server 127\.0\.0\.1:\d+ requires a client certificate: set --tls-cert and --tls-key/,
  );
});
