import { settingsFrom } from './settings.js';

describe('settings from the environment', () => {
  it('have a default for everything', () => {
    expect(settingsFrom({})).toMatchObject({
      servers: ['nats://127.0.0.1:4222'],
      logLevel: 'info',
      replicas: undefined,
      snapshotFacts: 20_000,
      ledgerMs: 90 * 86_400_000,
      unreferencedMs: 7 * 86_400_000,
      cleanupMs: 3_600_000,
    });
  });

  it('name every variable that is wrong, at once', () => {
    expect(() => settingsFrom({ SLUICE_LOG: 'loud', SLUICE_REPLICAS: 'three', SLUICE_HEALTH_PORT: '70000' })).toThrow(
      /SLUICE_LOG.*SLUICE_REPLICAS.*SLUICE_HEALTH_PORT/,
    );
  });

  it('take the credentials that the CLI and appliers take', () => {
    const credsOf = (environment: object): unknown => settingsFrom({ ...environment }).creds;
    expect(credsOf({ NATS_CREDS: '/nats.creds' })).toBe('/nats.creds');
    expect(credsOf({ NATS_CREDS: '/nats.creds', SLUICE_CREDS: '' })).toBe('/nats.creds');
    expect(credsOf({ NATS_CREDS: '/nats.creds', SLUICE_CREDS: '/sluice.creds' })).toBe('/sluice.creds');
    expect(credsOf({})).toBeUndefined();
  });

  it('take several servers', () => {
    expect(settingsFrom({ NATS_URL: 'nats://a:4222, nats://b:4222' }).servers).toEqual([
      'nats://a:4222',
      'nats://b:4222',
    ]);
  });
});
