import { isIP } from 'node:net';
import fc from 'fast-check';
import { isBroadcast, parseAddress, parseCidr } from './ip-address.js';

describe('addresses', () => {
  const digits = fc.stringMatching(/^[0-9a-f.:]{0,20}$/);
  test('are accepted exactly if the node would accept them', () => {
    const texts = fc.oneof(
      digits,
      fc.ipV4(),
      fc.ipV6(),
      fc.ipV4().map((ip) => `0${ip}`),
      fc.ipV4().map((ip) => `::ffff:${ip}`),
      fc.ipV4().map((ip) => ip.split('.').slice(1).join('.')),
    );
    fc.assert(
      fc.property(texts, (text) => {
        expect(parseAddress(text)?.family ?? 0).toBe(isIP(text));
      }),
      { numRuns: 3_000 },
    );
  });

  test.each(['fe80::1%eth0', '::ffff:010.0.0.1', '1.2.3', '0x7f.0.0.1', '2130706433', ' ::1', '', '1.2.3.4/8'])(
    '%j is not an address',
    (text) => {
      expect(parseAddress(text)).toBeUndefined();
    },
  );

  test('a network is the address with the bits after its length cleared', () => {
    fc.assert(
      fc.property(fc.ipV4(), fc.integer({ min: 0, max: 32 }), (ip, prefix) => {
        const number = ip.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
        const first = Math.floor(number / 2 ** (32 - prefix)) * 2 ** (32 - prefix);
        const text = [24, 16, 8, 0].map((shift) => Math.floor(first / 2 ** shift) % 256).join('.');
        expect(parseCidr(`${ip}/${prefix}`)).toEqual({
          family: 4,
          address: ip,
          prefix,
          network: `${text}/${prefix}`,
          isNetwork: ip === text,
        });
      }),
    );
  });

  test('the last address of an IPv4 network is its broadcast address, if it has more than two', () => {
    expect(
      ['10.0.0.255/24', '10.0.0.254/24', '10.0.0.1/31', '10.0.0.1/32', '2001:db8::ffff/112'].map((text) =>
        isBroadcast(parseCidr(text)!),
      ),
    ).toEqual([true, false, false, false, false]);
  });

  test('equal addresses have equal texts', () => {
    expect(parseCidr('2001:DB8:0:0:0:0:0:1/64')).toEqual({
      family: 6,
      address: '2001:db8::1',
      prefix: 64,
      network: '2001:db8::/64',
      isNetwork: false,
    });
    expect(parseCidr('::/0')).toMatchObject({ network: '::/0', isNetwork: true });
  });
});
