import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Systemd } from './systemd.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-systemd-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A systemctl that hangs as long as the file `hangs` exists. */
function systemdOf(): Systemd {
  const systemctl = join(folder, 'systemctl');
  writeFileSync(systemctl, `#!/bin/sh\nif [ -e '${folder}/hangs' ]; then sleep 600; fi\necho ActiveState=active\n`);
  chmodSync(systemctl, 0o755);
  return new Systemd(systemctl, folder, new AbortController().signal);
}
const hang = (): void => writeFileSync(join(folder, 'hangs'), '');
const answer = (): void => rmSync(join(folder, 'hangs'));
const reason = (systemd: Systemd, mostMs?: number): Promise<string> =>
  systemd.show('x.service', mostMs).then(
    ({ active }) => active,
    ({ message }: Error) => message.replace(folder, ''),
  );

it('waits less for a systemctl that has just not answered in time, until it answers again', async () => {
  const systemd = systemdOf();
  hang();
  expect(await reason(systemd)).toBe('/systemctl was killed after 10000 ms');
  expect(await reason(systemd)).toBe('/systemctl was killed after 2000 ms');
  answer();
  expect(await reason(systemd)).toBe('active');
  hang();
  expect(await reason(systemd)).toBe('/systemctl was killed after 10000 ms');
});

it('does not conclude anything from a call that had little time', async () => {
  const systemd = systemdOf();
  hang();
  expect(await reason(systemd, 50)).toBe('/systemctl was killed after 50 ms');
  expect(await reason(systemd)).toBe('/systemctl was killed after 10000 ms');
});
