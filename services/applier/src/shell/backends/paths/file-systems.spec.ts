import { FileSystems, hasRemote } from './file-systems.js';

const LOCAL = `22 27 0:20 / /proc rw,nosuid shared:5 - proc proc rw
35 22 0:29 / /proc/sys/fs/binfmt_misc rw,relatime shared:13 - autofs systemd-1 rw,fd=29
23 27 0:21 / /sys rw,nosuid shared:6 - sysfs sysfs rw
41 23 0:36 / /sys/fs/fuse/connections rw shared:19 - fusectl fusectl rw
25 27 0:5 / /dev rw,nosuid shared:2 - devtmpfs udev rw,size=8031732k
27 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
28 27 0:24 / /run rw,nosuid shared:7 - tmpfs tmpfs rw,size=1610508k
`;

it.each([
  ['of a disk, of memory and of the kernel answer without a server', LOCAL, false],
  [
    'on NFS may not answer',
    `${LOCAL}90 27 0:52 / /mnt/a\\040b rw,relatime shared:50 - nfs4 server:/x rw,vers=4.2\n`,
    true,
  ],
  [
    'of another program may not answer',
    `${LOCAL}91 27 0:53 / /home/a rw,nosuid - fuse.sshfs a@b: rw,user_id=0\n`,
    true,
  ],
  ['of an unknown type may not answer', `${LOCAL}92 27 0:54 / /new rw - newfs none rw\n`, true],
])('file systems %s', (_name, mounts, expected) => {
  expect(hasRemote(mounts)).toBe(expected);
});

it('a folder on a disk answers, and so does one that does not exist', async () => {
  const fileSystems = new FileSystems('/proc/self/root');
  await fileSystems.tryAll(['/', '/does-not-exist']);
  expect(await Promise.all(['/', '/does-not-exist', '/etc'].map((folder) => fileSystems.answers(folder)))).toEqual([
    true,
    true,
    true,
  ]);
});
