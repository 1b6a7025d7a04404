import { settingsFrom } from './settings.js';

describe('settings from the environment', () => {
  it('all have a default', () => {
    expect(settingsFrom({})).toMatchObject({
      logLevel: 'info',
      replicas: undefined,
      snapshotFacts: 20_000,
      ledgerMs: 90 * 86_400_000,
      unreferencedMs: 7 * 86_400_000,
      cleanupMs: 3_600_000,
      sourceQuotaBytes: 256_000_000,
      healthAddress: '127.0.0.1',
    });
  });

  it('are refused together, with every variable that is wrong', () => {
    expect(() => settingsFrom({ SLUICE_LOG: 'loud', SLUICE_REPLICAS: 'three', SLUICE_HEALTH_PORT: '70000' })).toThrow(
      /SLUICE_LOG.*SLUICE_REPLICAS.*SLUICE_HEALTH_PORT/,
    );
  });
});
