import { DnsServer } from '#libs/testing';
import { NameServer } from './name-server.js';

describe('a look-up of a host name', () => {
  let dns: DnsServer;
  let server: NameServer;
  beforeEach(async () => {
    dns = await DnsServer.start();
    server = new NameServer([dns.address]);
  });
  afterEach(() => dns.close());

  it('returns the addresses in numerical order, each once', async () => {
    dns.addresses.set('db.example.com', ['192.0.2.10', '192.0.2.9', '10.0.0.1', '192.0.2.9']);
    expect(await server.ask('db.example.com')).toEqual({
      ok: true,
      addresses: ['10.0.0.1', '192.0.2.9', '192.0.2.10'],
    });
    expect(dns.questions).toContain('db.example.com');
  });

  it('says why there are none', async () => {
    dns.addresses.set('empty.example.com', []);
    dns.addresses.set(
      'many.example.com',
      Array.from({ length: 28 }, (_, i) => `10.0.0.${i}`),
    );
    expect(await server.ask('other.example.com')).toEqual({ ok: false, reason: 'there is no such name' });
    expect(await server.ask('empty.example.com')).toEqual({ ok: false, reason: 'it has no IPv4 address' });
    expect(await server.ask('many.example.com')).toMatchObject({ ok: true });
    dns.isFailing = true;
    expect(await server.ask('many.example.com')).toEqual({
      ok: false,
      reason: 'the DNS server answers ESERVFAIL',
    });
  });

  it('ends when nobody answers', async () => {
    const gone = await DnsServer.start();
    const { address } = gone;
    await gone.close();
    expect(await new NameServer([address]).ask('db.example.com')).toEqual({
      ok: false,
      reason: 'no DNS server answers',
    });
  });
});
