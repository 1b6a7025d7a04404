import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ConfigEntry } from '#libs/contracts';
import { bootClock } from '../boot.js';
import { FileSystems } from '../backends/paths/file-systems.js';
import { parseNetwork, ProbeNetworks } from './probe-networks.js';
import { checkProbe, runProbes } from './run-probes.js';

const surroundings = (networks: readonly string[] = []) => ({
  root: '/',
  allowExec: false,
  probeNetworks: new ProbeNetworks(networks),
  fileSystems: new FileSystems('/'),
  ending: new AbortController().signal,
});
const probe = (spec: object): ConfigEntry =>
  ({ kind: 'Probe', name: 'p', spec: { ...spec, timeout: '30s', retries: 0 } }) as never;
const tcp = (address: string) => probe({ tcp: { address } });
const get = (url: string) => probe({ http: { url, status: [204] } });

/** What a probe ends with, whatever its check says: a name may resolve to another address later. */
const outcome = async (entry: ConfigEntry, networks: readonly string[] = []) => {
  const [result] = await runProbes([entry], surroundings(networks), bootClock() + 60_000, bootClock);
  return result?.passed === true ? 'passed' : result?.reason;
};
const refusal = (entry: ConfigEntry, networks: readonly string[] = []) => {
  try {
    checkProbe(entry, surroundings(networks));
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
};

describe('the networks that probes may reach', () => {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(request.url ?? '');
    response.writeHead(request.url === '/moved' ? 302 : 204, { location: 'http://169.254.169.254/' }).end();
  });
  const port = (): number => (server.address() as AddressInfo).port;
  beforeAll(() => new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve)));
  afterAll(() => void server.close());
  beforeEach(() => void (requests.length = 0));

  it.each([
    tcp('169.254.169.254:80'),
    tcp('[fe80::1]:80'),
    tcp('[::ffff:169.254.169.254]:80'),
    get('http://169.254.169.254/latest/meta-data'),
    get('http://2852039166/'),
    get('http://[fe80::1]/'),
    get('https://169.254.10.1/'),
  ])('leave out link-local addresses, and a config with one is refused: %j', async (entry) => {
    expect(refusal(entry)).toMatch(/^probes may not connect to .*, a link-local address; .* --probe-network$/);
    expect(await outcome(entry)).toBe(refusal(entry));
  });

  it('leave out names that resolve to a link-local address', async () => {
    // getaddrinfo reads this as a number, as it does 0xa9fea9fe: no resolver is needed.
    expect(await outcome(tcp('2852039166:80'))).toMatch(/^2852039166 resolves to 169\.254\.169\.254: probes may not/);
    expect(await outcome(tcp('0xa9fea9fe:80'))).toMatch(/^0xa9fea9fe resolves to 169\.254\.169\.254: probes may not/);
  });

  it('are all others by default', async () => {
    expect(await outcome(tcp(`127.0.0.1:${port()}`))).toBe('passed');
    expect(await outcome(get(`http://localhost:${port()}/`))).toBe('passed');
    expect(refusal(tcp('192.0.2.1:80'))).toBeUndefined();
    expect(refusal(get('https://[2001:db8::1]/'))).toBeUndefined();
  });

  it('are those that the node lists', async () => {
    expect(await outcome(get(`http://localhost:${port()}/`), ['127.0.0.0/8'])).toBe('passed');
    expect(refusal(tcp('169.254.20.10:53'), ['169.254.20.10'])).toBeUndefined();
    expect(refusal(tcp(`127.0.0.1:${port()}`), ['10.0.0.0/8'])).toBe(
      'probes of this node may not connect to 127.0.0.1: it is in no network listed with --probe-network',
    );
    requests.length = 0;
    expect(await outcome(get(`http://localhost:${port()}/`), ['10.0.0.0/8'])).toMatch(
      /^localhost resolves to (127\.0\.0\.1|::1): probes of this node may not connect/,
    );
    expect(requests).toEqual([]);
  });

  it('cannot be left through a redirect, because redirects are not followed', async () => {
    expect(await outcome(get(`http://127.0.0.1:${port()}/moved`))).toBe(
      `http://127.0.0.1:${port()}/moved answered 302`,
    );
    expect(requests).toEqual(['/moved']);
  });
});

it('a reason shows the URL of a probe without its password', async () => {
  const server = createServer((_request, response) => void response.writeHead(500).end());
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const at = `127.0.0.1:${(server.address() as AddressInfo).port}/`;
  expect(await outcome(get(`http://user:secret@${at}`))).toBe(`http://${at} answered 500`);
  expect(await outcome(get(`ftp://user:secret@${at}`))).toBe('http.url is not an http or https URL');
  server.close();
});

it('a network is an address with or without a length', () => {
  expect(['10.0.0.0/8', '::1', 'fe80::/10', '10.0.0.0/33', '10.0.0/8', 'a/8', '10.0.0.0/'].map(parseNetwork)).toEqual([
    { address: '10.0.0.0', prefix: 8, family: 'ipv4' },
    { address: '::1', prefix: 128, family: 'ipv6' },
    { address: 'fe80::', prefix: 10, family: 'ipv6' },
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});
