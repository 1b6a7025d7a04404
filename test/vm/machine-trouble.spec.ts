import { describeWith } from '../e2e/needs.js';
import { DEMO, demo, everywhere, vmFile, VmScene } from './vm-scene.js';

jest.setTimeout(1_800_000);

describeWith(['vm-long'], 'a machine in trouble', () => {
  const place = new VmScene();
  beforeAll(() => place.open());
  afterAll(() => place.close());
  const absent = (path: string): string => `cat: ${path}: No such file or directory`;

  test.each([
    ['that does not exist', 'vm.no_such_thing', '1', 'the kernel has no parameter vm.no_such_thing'],
    ['with a value that the kernel rejects', 'vm.swappiness', '9999', 'the kernel rejects 9999 for vm.swappiness'],
  ])('refuses a kernel parameter %s, and nothing of the change remains', async (_what, key, value, reason) => {
    const before = await place.vm.run('cat /proc/sys/vm/swappiness');
    expect(await place.apply(vmFile('neighbour', 'x\n'), everywhere('Sysctl', 'odd', { key, value }))).toMatchObject({
      phase: 'ended',
      outcome: 'reverted',
    });
    expect(await place.untilReason(reason, 'invalid')).toMatchObject({ restored: true });
    expect(
      await place.vm.run('cat /proc/sys/vm/swappiness; cat /etc/neighbour 2>&1; ls /etc/sysctl.d | grep sluice; true'),
    ).toBe(`${before}\n${absent('/etc/neighbour')}`);
  });

  test('whose disk is full during a change rolls back once there is space, and fails', async () => {
    place.pauses.hold((point) => point === 'after write /etc/first');
    const change = await place.publish({
      apply: [vmFile('first', 'new\n'), vmFile('second', `${'new\n'.repeat(10_000)}`)],
    });
    await place.pauses.reached('its first file');
    await place.vm.run('for size in 64M 1M 4k; do dd if=/dev/zero of=/filler-$size bs=$size 2>/dev/null; done; true');
    expect(
      await place.vm.run('echo x > /etc/no-room; true; rm -f /etc/no-room; df --output=avail / | tail -1'),
    ).toMatch(/^\s*0$/);
    place.pauses.release();
    await place.comes(
      async () => (await place.vm.run('journalctl -u sluice-applier --no-pager -o cat -n 50')).includes('ENOSPC'),
      'it says so',
      100_000,
    );
    await place.vm.run('rm /filler-*');
    expect(await place.ended(change)).toMatchObject({ phase: 'ended', outcome: 'reverted' });
    expect(await place.quiet()).toMatchObject({ verdict: 'failed', restored: true });
    expect(await place.vm.run('cat /etc/first /etc/second 2>&1; true')).toBe(
      `${absent('/etc/first')}\n${absent('/etc/second')}`,
    );
  });

  test('whose applier cannot write /etc fails, makes nothing known-bad, and is restored', async () => {
    const dropIn = '/etc/systemd/system/sluice-applier.service.d/zz-read-only.conf';
    await place.vm.run(
      `printf '[Service]\\nReadWritePaths=\\nReadWritePaths=/opt /srv /var\\n' > ${dropIn} && systemctl daemon-reload && systemctl restart sluice-applier`,
    );
    expect(await place.apply(vmFile('locked', 'x\n'))).toMatchObject({ phase: 'ended', outcome: 'reverted' });
    expect(await place.untilReason('EROFS', 'failed')).toMatchObject({ restored: true });
    await place.vm.run(`rm ${dropIn} && systemctl daemon-reload && systemctl restart sluice-applier`);
    await place.commit(vmFile('locked', 'x\n'));
    expect(await place.vm.run('cat /etc/locked')).toBe('x');
  });

  test('accepts no second applier on the same state folder, and the first one continues', async () => {
    const { code, error } = await place.vm.try(
      '. /etc/default/sluice-applier; sluice-applier --node "$SLUICE_NODE" --server "$NATS_URL"',
    );
    expect({ code, error }).toEqual({
      code: 1,
      error: expect.stringMatching(
        /the state folder is in use by process \d+: two appliers must not share one/,
      ) as string,
    });
    await place.commit(vmFile('locked', 'y\n'));
  });

  test('whose journal was written by a newer applier is left alone until that one is installed again', async () => {
    await place.vm.run('systemctl stop sluice-applier && cp /var/lib/sluice/journal.json /var/tmp/journal.json');
    await place.vm.run(`node -e '
      const { readFileSync, writeFileSync } = require("fs");
      const { createHash } = require("crypto");
      const journal = JSON.stringify({ ...JSON.parse(readFileSync("/var/tmp/journal.json", "utf8")).journal, v: 2 });
      writeFileSync("/var/lib/sluice/journal.json", JSON.stringify({ sha256: createHash("sha256").update(journal).digest("hex") }).slice(0, -1) + ",\\"journal\\":" + journal + "}\\n");
    '; systemctl start sluice-applier`);
    await place.comes(
      async () =>
        (await place.vm.run('journalctl -u sluice-applier --no-pager -o cat -n 20')).includes(
          'written by a newer applier (v 2): start that version',
        ),
      'it says so',
      100_000,
    );
    await place.vm.run(
      'systemctl stop sluice-applier; cp /var/tmp/journal.json /var/lib/sluice/journal.json; systemctl start sluice-applier',
    );
    await place.commit(vmFile('locked', 'z\n'));
  });

  test('is rebooted when a unit does not stop, and runs the new one', async () => {
    // The way in which a unit stops also applies to the running unit: it stops normally until that file exists.
    const stop = '/bin/sh -c "[ ! -e /run/stubborn ] || exec sleep 1000"';
    const stubborn = (seconds: number) =>
      demo(
        seconds,
        `[Service]\nExecStart=/bin/sleep ${seconds}\nExecStop=${stop}\nTimeoutStopSec=120s\n[Install]\nWantedBy=multi-user.target\n`,
      );
    await place.commit(stubborn(1_000));
    const before = await place.bootId();
    await place.vm.run('touch /run/stubborn');
    await place.commit(stubborn(2_000));
    expect(await place.untilReason('the machine was restarted instead', 'applied')).toMatchObject({ restored: true });
    expect(await place.bootId()).not.toBe(before);
    expect(await place.vm.run(place.argumentOf(DEMO))).toBe('2000');
  });
});
