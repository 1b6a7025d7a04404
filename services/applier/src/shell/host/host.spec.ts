import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findHost } from './host.js';

describe('the unit that an applier runs in', () => {
  let folder: string;
  let systemctl: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-host-'));
    systemctl = join(folder, 'systemctl');
    writeFileSync(systemctl, '#!/bin/sh\necho running\n');
    chmodSync(systemctl, 0o755);
    mkdirSync(join(folder, 'self'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it.each([
    ['cgroup 2', '0::/system.slice/sluice-applier.service\n', 'sluice-applier.service'],
    ['cgroup 1', '3:cpu:/a.service\n1:name=systemd:/system.slice/b.service\n0::/\n', 'b.service'],
    ['a container', '0::/system.slice/containerd.service/kubepods-pod1.slice/cri-2.scope\n', undefined],
    ['no systemd', '0::/\n', undefined],
  ])('is read from its cgroup: %s', async (_name, cgroup, unit) => {
    writeFileSync(join(folder, 'self/cgroup'), cgroup);
    const host = await findHost({ systemctl, proc: folder }, folder, new AbortController().signal);
    expect(host.ownUnit).toBe(unit);
  });

  it('is not known without systemd, or where procfs cannot be read', async () => {
    const { signal } = new AbortController();
    expect((await findHost({ proc: folder }, folder, signal)).ownUnit).toBeUndefined();
    expect((await findHost({ systemctl, proc: folder }, folder, signal)).ownUnit).toBeUndefined();
  });
});
